"""Who works in a run folder: one driver at a time, for two would spoil each other's journal and checkpoints.

The lock is the operating system's and ends with the process that holds it, however that ends: nothing
a dead one leaves behind keeps the next out. What stands in the file is only told, and never believed.
"""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedRandom
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any

from penstock.control.plain_data import parsed_json
from penstock.domain.errors import InputError
from penstock.files import half_written
from penstock.live.inbox import ORDERS

_PRIVATE, _USUAL = 0o700, 0o777


class Ownership:
    """Of a run folder, while it is entered; who owns it may enter it again.

    On a file system without locks nobody is kept out. With `private`, what is needed to resume is for
    this user alone to read.
    """

    def __init__(self, out: Path, *, private: bool = True) -> None:
        self.out, self._private = out, private
        self._file: BufferedRandom | None = None
        self._entered = 0
        self._guard = RLock()

    @property
    def place(self) -> Path:
        return self.out / "work" / "owner.json"

    def __enter__(self) -> "Ownership":
        with self._guard:
            if self._file is None:
                self._file = self._locked()
            self._entered += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def leave(self) -> None:
        with self._guard:
            self._entered -= 1
            if self._entered == 0 and self._file is not None:
                with suppress(OSError):  # a full disk, at the worst: nobody believes what stands there
                    self._file.truncate(0)
                with suppress(OSError):  # of what could not be written before
                    self._file.close()
                self._file = None

    def _locked(self) -> BufferedRandom:
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            self.place.parent.mkdir(mode=_PRIVATE if self._private else _USUAL, exist_ok=True)
            for place in (self.place.parent, self.place):
                if place.is_symlink():
                    raise _link(place)
            # Not emptied here: it may be another's.
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            number = os.open(self.place, flags, 0o666)
            file = os.fdopen(number, "r+b")
        except OSError as problem:
            raise InputError(f"{self.out}: cannot write: {problem.strerror or problem}") from problem
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            who = _told(file.read())
            file.close()
            raise InputError(
                f"{self.out}: in use by another run: {who}; stop that one, or give another folder"
            ) from None
        except OSError:
            pass  # no locks here
        else:
            self._sweep()
        try:
            _refuse_links(self.out)
        except InputError:
            file.close()
            raise
        with suppress(OSError):  # a full disk: another one is then refused without a name
            file.truncate(0)
            file.write(json.dumps(_myself()).encode())
            file.flush()
        return file

    def _sweep(self) -> None:
        """What an earlier owner was writing when it was killed. Orders are written by others, also now."""
        for path in half_written(self.out):
            if path.parent.name != ORDERS:
                with suppress(OSError):
                    path.unlink()


def _refuse_links(out: Path) -> None:
    """Nothing of ours is one; by those in a folder from somebody else we would write and remove elsewhere."""
    for found in _links_in(out):
        raise _link(found)


def _link(found: str | Path) -> InputError:
    return InputError(f"{found}: a link; a run folder holds none: remove it, or give another folder")


def _links_in(folder: str | Path) -> Iterator[str]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:  # it goes: processes of before still end
        for entry in entries:
            if entry.is_symlink():
                yield entry.path
            elif entry.is_dir(follow_symlinks=False):
                yield from _links_in(entry.path)


def _myself() -> dict[str, Any]:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return {"pid": os.getpid(), "host": socket.gethostname(), "since": since}


def _told(words: bytes) -> str:
    """What an owner wrote, if that can be read: it may be in the middle of writing."""
    try:
        said = parsed_json(words)
        return f"process {int(said['pid'])} on {said['host']} since {said['since']}".replace("\n", " ")
    except (ValueError, LookupError, TypeError, OverflowError):
        return "a process that did not say which"
