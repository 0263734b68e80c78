"""Writing files whole or not at all."""

import os
import tempfile
from pathlib import Path

from penstock.domain.errors import InputError


def write_whole(path: Path, text: str) -> None:
    """Write beside the target and rename: a reader, or a crash, never meets half a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as problem:
        raise InputError(f"{path}: cannot write: {problem.strerror or problem}") from problem
