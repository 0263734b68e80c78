"""A stream between operators: numbered batches of Parquet files in a directory.

    log/data/<unique>.parquet    written by tasks; one that fails leaves a file nobody names, to be swept
    log/batches/<number>.json    a batch: its files, how many tuples, when they entered the application
    log/consumers/<name>.json    the first batch a consumer still needs

A batch exists from the moment its manifest is renamed into place, whole, and is never
changed; by then all of it is on disk. One query writes a log, any number read it. The number
of a batch is the offset of whoever reads, so batches are read in order and none twice.

Numbers have no gaps: whoever looks for the end goes on while there is a next one. So a micro-batch too large
for one batch is published as several whose manifests are written from the last to the first: all of
them are there once the first one is.
"""

import json
import shutil
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from penstock.domain.errors import InputError
from penstock.files import put_on_disk, write_whole
from penstock.runtimes.spark.offsets import Taken

MOST_TUPLES = 50_000  # of a batch, as far as its files can be told apart

Origins = tuple[tuple[float, int], ...]  # (moment tuples entered the application, how many of them)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFile:
    """One Parquet file of a batch."""

    name: str
    tuples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one micro-batch of the writing query added to the stream."""

    number: int
    epoch: int  # the writer's own count, to recognise a batch it writes again after a crash
    files: tuple[LogFile, ...]
    published_at_s: float
    origins: Origins
    final: bool = False  # nothing follows: the input was finite and has been read
    query: str | None = None  # that wrote it; None for a feeder, and in logs of earlier versions
    upto: str = ""  # offsets of that query's own input, where this micro-batch of it ends

    @property
    def tuples(self) -> int:
        return sum(file.tuples for file in self.files)


class StreamLog:
    """A directory of batches."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._latest = 0  # number of a batch that was the last once
        self._oldest: int | None = None  # number of the first that has not been removed; looked for once
        self._may_be_torn = True  # by a crash, after some of several batches

    @property
    def name(self) -> str:
        return self.root.name

    def create(self, consumers: Iterable[str] = ()) -> "StreamLog":
        """Make the directories; batches stay until every consumer named here is past them."""
        for part in ("data", "batches", "consumers"):
            (self.root / part).mkdir(parents=True, exist_ok=True)
        for consumer in consumers:
            if not self._mark(consumer).exists():
                self.passed(consumer, 0)
        return self

    def data_file(self, name: str) -> Path:
        return self.root / "data" / name

    def end(self, start: int = 0) -> int:
        """The number of the batch to come, given that batches up to `start` exist or existed."""
        while self._manifest(start).exists():
            start += 1
        return start

    def batch(self, number: int) -> Batch:
        try:
            read: dict[str, Any] = json.loads(self._manifest(number).read_text(encoding="utf-8"))
        except (OSError, ValueError) as problem:
            raise InputError(f"{self._manifest(number)}: cannot read batch {number}: {problem}") from problem
        read["files"] = tuple(LogFile(**file) for file in read["files"])
        read["origins"] = tuple((float(at), int(tuples)) for at, tuples in read["origins"])
        return Batch(**read)

    def batches(self, start: int, end: int) -> list[Batch]:
        return [self.batch(number) for number in range(start, end)]

    def end_of(self, start: int, end: int, *, tuples: int) -> int:
        """Where to end, so that batches from `start` on have no more than so many tuples; after one of
        them at least, and at `end` at the latest."""
        for number in range(start, end):
            tuples -= self.batch(number).tuples
            if tuples < 0:
                return max(number, start + 1)
        return end

    def last(self) -> Batch | None:
        """Looked for from where it was before: a log may hold all that a long run has published."""
        end = self.end(self._latest)
        # Old ones are removed in order, and never the last: if this one is there, none after it was removed.
        if end == 0 or not self._manifest(end - 1).exists():
            first = self.first()
            if first is None:
                return None
            end = self.end(first)
        self._latest = end - 1
        return self.batch(end - 1)

    def first(self) -> int | None:
        """The number of the oldest batch there is."""
        return min((int(path.stem) for path in (self.root / "batches").glob("*.json")), default=None)

    def all(self) -> Iterator[Batch]:
        """Every batch there is, in order."""
        number = self.first() or 0
        while self._manifest(number).exists():
            yield self.batch(number)
            number += 1

    def has(self, epoch: int, taken: Taken | None = None) -> bool:
        """Whether the writer has published this epoch, before a crash: of a query, the very micro-batch.

        A checkpoint that does not belong to this log, or is older, is an error: what comes of it would be
        taken for what was published before, and dropped.
        """
        last = self.last()
        if last is None:
            return False
        if taken is None or last.query is None:
            return last.epoch >= epoch
        if last.query == taken.query and last.epoch < epoch:
            return False
        if last.query == taken.query and last.epoch == epoch and last.upto == taken.upto:
            return True
        raise InputError(
            f"stream '{self.name}': micro-batch {epoch} comes from a checkpoint that is older than the one "
            f"micro-batch {last.epoch} was published with, or not that one; put that one back, "
            "or start afresh in another folder"
        )

    def publish(
        self,
        *,
        epoch: int,
        files: Sequence[LogFile],
        published_at_s: float,
        origins: Origins,
        final: bool = False,
        taken: Taken | None = None,
    ) -> Batch | None:
        """Add a batch, of a query what it has `taken`; None when the writer had already published this
        epoch, before a crash."""
        if self.has(epoch, taken):
            self._discard(files)
            return None
        if files:  # these are on disk: now their names, then the batch that names them
            put_on_disk(self.root / "data")
        last = self.last()
        batch = Batch(
            number=0 if last is None else last.number + 1,
            epoch=epoch,
            files=tuple(file for file in files if file.tuples),
            published_at_s=published_at_s,
            origins=origins,
            final=final,
            query=None if taken is None else taken.query,
            upto="" if taken is None else taken.upto,
        )
        parts = _parts(batch)
        if self._may_be_torn:
            self._remove_torn(batch.number)
        if len(parts) > 1 and last is None:
            # Without one before them, nobody could tell whether the first of several is still to come.
            parts = [replace(batch, files=(), origins=(), epoch=-1), *_numbered(parts, 1)]
            self._write(parts.pop(0))
        self._may_be_torn = len(parts) > 1
        for part in reversed(parts):
            self._write(part)
        self._may_be_torn = False
        return parts[-1]

    def _remove_torn(self, number: int) -> None:
        """Manifests from this number on, of a micro-batch whose first was not written any more: it comes
        again, maybe in fewer batches, and those that are too many would follow it."""
        for path in (self.root / "batches").glob("*.json"):
            if int(path.stem) >= number:
                path.unlink()

    def _write(self, batch: Batch) -> None:
        write_whole(self._manifest(batch.number), json.dumps(asdict(batch)))

    def sampled(self, file: Path, *, tuples: int) -> Path | None:
        """A few late tuples in a file of their own; None if there are none."""
        from pyarrow import parquet

        last = self.last()
        if last is None or not last.files:
            return None
        parquet.write_table(parquet.read_table(self.data_file(last.files[0].name)).slice(0, tuples), file)
        return file

    def export(self, folder: Path) -> int:
        """Bring the files of all batches, and no others, to a folder, in order; returns how many tuples."""
        folder.mkdir(parents=True, exist_ok=True)
        tuples = 0
        for batch in self.all():
            for file in batch.files:
                target = folder / f"{batch.number:09d}-{file.name}"
                if not target.exists():  # a run that went on after a stop has brought some before
                    _link(self.data_file(file.name), target)
            tuples += batch.tuples
        return tuples

    def passed(self, consumer: str, number: int) -> None:
        """Batches below `number` are no longer needed by this consumer."""
        write_whole(self._mark(consumer), json.dumps({"needs": number}))

    def needs(self, consumer: str) -> int:
        """The first batch this consumer still needs; 0 for one that never took any."""
        try:
            return int(json.loads(self._mark(consumer).read_text(encoding="utf-8"))["needs"])
        except FileNotFoundError:
            return 0

    def clean(self) -> int:
        """Remove what every consumer is past, but for the last batch; returns how many batches went.

        A log without consumers keeps everything: it holds results.
        """
        consumers = [path.stem for path in (self.root / "consumers").glob("*.json")]
        if not consumers:
            return 0
        needed, last = min(self.needs(consumer) for consumer in consumers), self.last()
        if last is None or not needed:
            return 0
        if self._oldest is None:
            self._oldest = self.first() or 0
        gone, until = 0, min(needed, last.number)
        while self._oldest < until:  # one after another: listing all would take long where many are kept
            self._remove(self._oldest)
            self._oldest += 1
            gone += 1
        return gone

    def size_of(self, batch: Batch) -> int:
        """Bytes on disk."""
        return sum(self.data_file(file.name).stat().st_size for file in batch.files)

    def _remove(self, number: int) -> None:
        if self._manifest(number).exists():
            batch = self.batch(number)
            self._manifest(number).unlink()  # first: a manifest never names a file that is gone
            self._discard(batch.files)

    def sweep(self, *, older_than_s: float = 0.0) -> int:
        """Remove files that no batch names and that are not being written any more: tasks that failed, or a
        driver that was killed, have left them. Returns how many."""
        written_s = time.time() - older_than_s
        old = [path for path in (self.root / "data").iterdir() if path.stat().st_mtime <= written_s]
        if not old:
            return 0
        numbers = sorted(int(path.stem) for path in (self.root / "batches").glob("*.json"))
        named = {file.name for number in numbers for file in self.batch(number).files}
        left = [path for path in old if path.name not in named]
        for path in left:
            path.unlink(missing_ok=True)
        return len(left)

    def _discard(self, files: Iterable[LogFile]) -> None:
        for file in files:
            self.data_file(file.name).unlink(missing_ok=True)

    def _manifest(self, number: int) -> Path:
        return self.root / "batches" / f"{number:09d}.json"

    def _mark(self, consumer: str) -> Path:
        return self.root / "consumers" / f"{consumer}.json"


def _parts(batch: Batch) -> list[Batch]:
    """A batch, or several that follow each other in its place, none of them too large."""
    groups: list[list[LogFile]] = [[]]
    for file in batch.files:
        if groups[-1] and sum(one.tuples for one in groups[-1]) + file.tuples > MOST_TUPLES:
            groups.append([])
        groups[-1].append(file)
    if len(groups) == 1:
        return [batch]
    origins, parts = deque(batch.origins), list[Batch]()
    for group in groups:
        files = tuple(group)
        parts.append(
            replace(batch, files=files, origins=_first_of(origins, sum(one.tuples for one in files)))
        )
    parts[-1] = replace(parts[-1], origins=(*parts[-1].origins, *origins))
    final = [replace(part, final=False) for part in parts[:-1]]
    return _numbered([*final, parts[-1]], 0)


def _numbered(parts: Sequence[Batch], later: int) -> list[Batch]:
    """One after another, this much later than the first is now."""
    begin = parts[0].number + later
    return [replace(part, number=begin + place) for place, part in enumerate(parts)]


def _first_of(origins: "deque[tuple[float, int]]", tuples: int) -> Origins:
    """When the first so many tuples entered; they are taken away."""
    taken = list[tuple[float, int]]()
    while tuples and origins:
        at_s, there = origins.popleft()
        here = min(there, tuples)
        taken.append((at_s, here))
        tuples -= here
        if there > here:
            origins.appendleft((at_s, there - here))
    return tuple(taken)


def _link(file: Path, target: Path) -> None:
    """Files never change, so they need not be there twice; some file systems have no links."""
    try:
        target.hardlink_to(file)
    except OSError:
        shutil.copyfile(file, target)
