"""A journal in a file: one line an entry, on disk before anything is done about it."""

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from penstock.control.journal import Entry, decoded_lines, encoded
from penstock.domain.errors import InputError
from penstock.files import check_has_end

E = TypeVar("E", bound=Entry)


class JournalFile:
    """Appends to a file; what a crash left half written at its end is cut off by the first entry.

    One that is opened in vain, because a run is refused after all, changes nothing and leaves no file.

    An entry that cannot be written raises OSError and leaves the file as it was.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._torn = True  # for all that is known
        try:
            self._made = not path.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b", buffering=0)
        except OSError as problem:
            raise InputError(f"journal {path}: cannot write: {problem.strerror or problem}") from problem

    def append(self, entry: Entry) -> None:
        line = (encoded(entry) + "\n").encode("utf-8")
        end = self._file.seek(0, os.SEEK_END)
        try:
            if self._torn:
                end = self._cut_torn_line()
                self._torn = False
            while line:  # a disk that fills up takes only part of it, and then raises
                line = line[self._file.write(line) :]
            os.fsync(self._file.fileno())
        except OSError as problem:
            with suppress(OSError):  # a device has no end to go back to
                self._file.truncate(end)
            raise OSError(
                problem.errno, f"journal {self.path}: cannot write: {problem.strerror or problem}"
            ) from problem

    def close(self) -> None:
        self._file.close()
        if self._made and self._torn:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> "JournalFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _cut_torn_line(self) -> int:
        """Where the file ends then."""
        size = self._file.seek(0, os.SEEK_END)
        position = size
        while position > 0:
            begin = max(position - 65_536, 0)
            self._file.seek(begin)
            chunk = self._file.read(position - begin)
            found = chunk.rfind(b"\n")
            if found >= 0:
                position = begin + found + 1
                break
            position = begin
        if position < size:
            self._file.truncate(position)
        return position


def entries_of(path: Path, kind: type[E]) -> list[E]:
    """Those of one kind; none of a journal that is not there."""
    return [one for one in read_journal(path, kind) if isinstance(one, kind)] if path.exists() else []


def read_journal(path: Path, *kinds: type[object]) -> list[Entry]:
    """All entries of a journal, or those of these kinds: a journal of weeks does not fit into memory, and the
    others are not even decoded. A last line that a crash cut off is left out."""
    begins = tuple(f'{{"kind":"{kind.__name__}"' for kind in kinds)
    try:
        check_has_end(path)
        with open(path, encoding="utf-8", newline="\n", errors="replace") as file:
            return list(decoded_lines(line for line in file if not begins or line.startswith(begins)))
    except OSError as problem:
        raise InputError(f"journal {path}: {problem.strerror or problem}") from problem
    except InputError as problem:
        raise InputError(f"journal {path}: {problem}") from problem
