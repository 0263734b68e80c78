"""Reading files that have an end; writing them whole or not at all, and so that they outlast a power cut."""

import os
import re
import secrets
import shutil
from collections.abc import Iterable
from contextlib import suppress
from errno import EACCES, EISDIR, ELOOP, ENODEV, ENOTDIR
from pathlib import Path

from penstock.domain.errors import InputError

_HALF_WRITTEN = re.compile(r"^\..+\.[0-9a-f]{16}$")


def content_of(path: Path) -> bytes:
    """All of a file."""
    check_has_end(path)
    return path.read_bytes()


def check_has_end(path: Path) -> None:
    """Refuse a device like /dev/zero, which would fill the memory; a pipe ends when its writer does."""
    if path.is_char_device():
        raise OSError(ENODEV, "a device, not a file")


def check_can_write(path: Path) -> None:
    """Refuse an output that could not be written, before the work whose result it is to hold."""
    try:
        if path.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        _pointed_to(path)
        there = path.exists()
        existing = path if there else next(parent for parent in path.absolute().parents if parent.exists())
        if not there and not existing.is_dir():
            raise NotADirectoryError(ENOTDIR, f"{existing} is not a directory")
        if not os.access(existing, os.W_OK):
            raise PermissionError(EACCES, os.strerror(EACCES))
    except OSError as problem:  # also of looking: a name too long, a directory that may not be entered
        raise InputError(f"{path}: cannot write: {problem.strerror or problem}") from problem


def write_whole(path: Path, content: str | bytes | Iterable[str]) -> None:
    """Write beside the target and rename: a reader, or a crash, never meets half a file.

    Content too large for the memory may come piece by piece.
    """
    pieces = (content,) if isinstance(content, str | bytes) else content
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:  # a pipe or a device: there is nothing to swap
                file.writelines(map(_encoded, pieces))
            return
        target = _pointed_to(path)  # a link stays a link, and what it points to changes
        target.parent.mkdir(parents=True, exist_ok=True)
        _swap_in(target, map(_encoded, pieces))
    except OSError as problem:
        raise InputError(f"{path}: cannot write: {problem.strerror or problem}") from problem


def _pointed_to(path: Path) -> Path:
    try:
        return path.resolve()
    except RuntimeError as problem:  # what Python 3.11 and 3.12 raise for a link that leads to itself
        raise OSError(ELOOP, os.strerror(ELOOP)) from problem


def half_written(folder: Path) -> list[Path]:
    """What `write_whole` was writing there when its process was killed, or is writing now."""
    return [
        Path(place) / name
        for place, _, names in os.walk(folder)
        for name in names
        if _HALF_WRITTEN.match(name)
    ]


def _encoded(piece: str | bytes) -> bytes:
    # Names of files are any bytes: what of them is no text is shown as such.
    return piece.encode("utf-8", "backslashreplace") if isinstance(piece, str) else piece


def _swap_in(target: Path, pieces: Iterable[bytes]) -> None:
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(8)}")
    try:
        # Created with the permissions any new file would get; those of a file replaced are kept.
        with open(temporary, "xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(temporary, target.stat().st_mode)
        os.replace(temporary, target)
        with suppress(OSError):  # some file systems cannot, and the file itself is there
            put_on_disk(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def put_on_disk(path: Path | str) -> None:
    """Wait until a file, or the list of files in a folder, is on disk."""
    there = os.open(path, os.O_RDONLY)
    try:
        os.fsync(there)
    finally:
        os.close(there)


def copy_to_disk(origin: Path, target: Path) -> None:
    """A copy of a folder where there is none; all of it is on disk then."""
    shutil.copytree(origin, target, copy_function=_copied)
    for folder, _, _ in os.walk(target):
        put_on_disk(folder)


def _copied(origin: str, target: str) -> str:
    shutil.copy2(origin, target)
    put_on_disk(target)
    return target
