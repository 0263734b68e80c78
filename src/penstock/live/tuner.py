"""The process that tunes beside a run: `python -m penstock.live.tuner FOLDER [MODULE:CLASS ...]`.

It works out FOLDER/job.json; policies from outside Penstock are named so that it can load them.
"""

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from penstock.control.journal import Header, decoded, encoded
from penstock.domain.errors import InputError
from penstock.files import write_whole
from penstock.policy.registry import load_any
from penstock.training.retuning import tuned

_NICE = 10  # the application goes first


def main(folder: Path, own_policies: Sequence[str]) -> None:
    os.nice(_NICE)
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    for name in own_policies:
        load_any(name)
    job = decoded((folder / "job.json").read_text())
    if not isinstance(job, Header):
        raise InputError(f"{folder}: its job is a {type(job).__name__}, not a header")
    write_whole(folder / "answer.json", encoded(tuned(job.controller)))


def _end_with_the_run() -> None:
    while os.read(0, 1):  # no input ever comes; it returns when the parent process is gone
        pass
    os._exit(1)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2:])
    except InputError as problem:
        sys.exit(str(problem))
