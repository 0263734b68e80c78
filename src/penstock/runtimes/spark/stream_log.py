"""A stream between operators: numbered batches of Parquet files in a directory.

    log/data/<unique>.parquet    written by tasks; one that fails leaves a file nobody names, to be swept
    log/batches/<number>.json    a batch: its files, how many tuples, when they entered the application
    log/consumers/<name>.json    the first batch a consumer still needs

A batch exists from the moment its manifest is renamed into place, whole, and is never
changed; by then all of it is on disk. One query writes a log, any number read it. The number
of a batch is the offset of whoever reads, so batches are read in order and none twice.

A micro-batch is one batch, however large it is: of what one micro-batch gives, nothing comes before the rest,
so no watermark can rise by a part of it and leave another part late.
"""

import json
import re
import shutil
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from penstock.domain.errors import InputError
from penstock.files import put_on_disk, write_whole
from penstock.runtimes.spark.offsets import Taken

_EXPORTED = re.compile(r"\.?[0-9]{9}-")
_BLOCK = 512  # bytes, as the system counts them, whatever the disk has

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


class _Swept(NamedTuple):
    """How far a log has been swept."""

    epoch: float  # files of this one and those before it are all named, or gone
    number: int  # of the first batch that may name others


class StreamLog:
    """A directory of batches."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._latest = 0  # number of a batch that was the last once
        self._oldest: int | None = None  # number of the first that has not been removed; looked for once
        self._may_have_gap = True  # until somebody has looked
        self._swept: _Swept | None = None
        self._writing = threading.Lock()  # what is being published is not to be swept
        self._is_closed = False

    def __reduce__(self) -> tuple[type["StreamLog"], tuple[Path]]:
        """Sent to another process, it looks for itself."""
        return StreamLog, (self.root,)

    @property
    def name(self) -> str:
        return self.root.name

    def create(self, consumers: Iterable[str] = ()) -> "StreamLog":
        """Make the directories; batches stay until every consumer named here is past them."""
        for part in ("data", "batches", "consumers"):
            (self.root / part).mkdir(parents=True, exist_ok=True)
        named = set(consumers)
        for consumer in named:
            if not self._mark(consumer).exists():
                self.passed(consumer, 0)
        if named:  # else of those that were there before nobody would go on, and nothing be removed
            for path in (self.root / "consumers").glob("*.json"):
                if path.stem not in named:
                    path.unlink()
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
            read["files"] = tuple(LogFile(**file) for file in read["files"])
            read["origins"] = tuple((float(at), int(tuples)) for at, tuples in read["origins"])
            return Batch(**read)
        except (OSError, ValueError, LookupError, TypeError) as problem:
            raise InputError(f"{self._manifest(number)}: cannot read batch {number}: {problem}") from problem

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
        while end == 0 or not self._manifest(end - 1).exists():
            first = self.first()
            if first is None:
                return None
            end = self.end(first)
        try:
            last = self.batch(end - 1)
        except InputError:
            if self._manifest(end - 1).exists():
                raise
            return self.last()  # another has come meanwhile, and this one went
        self._latest = end - 1
        return last

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
        with self._writing:
            if self._is_closed:
                raise InputError(f"stream '{self.name}': nothing more is published: the run has ended")
            return self._publish(epoch, files, published_at_s, origins, final, taken)

    def _publish(
        self,
        epoch: int,
        files: Sequence[LogFile],
        published_at_s: float,
        origins: Origins,
        final: bool,
        taken: Taken | None,
    ) -> Batch | None:
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
        if self._may_have_gap:
            self._check_nothing_follows(batch.number)
            self._may_have_gap = False
        write_whole(self._manifest(batch.number), json.dumps(asdict(batch)))
        return batch

    def _check_nothing_follows(self, number: int) -> None:
        """What stands behind a gap would be lost, or read twice."""
        if any(int(path.stem) > number for path in (self.root / "batches").glob("*.json")):
            raise InputError(
                f"{self._manifest(number)}: batch {number} is missing, and there are later ones; "
                "put it back, or start afresh in another folder"
            )

    def sampled(self, file: Path, *, tuples: int) -> Path | None:
        """A few late tuples in a file of their own; None if there are none."""
        from pyarrow import parquet

        last = self.last()
        if last is None or not last.files:
            return None
        parquet.write_table(parquet.read_table(self.data_file(last.files[0].name)).slice(0, tuples), file)
        return file

    def export(self, folder: Path) -> int:
        """Bring the files of all batches, and no others, to a folder, in order; returns how many tuples.

        A run that goes on after a stop has brought some before; those that are no longer kept go.
        """
        folder.mkdir(parents=True, exist_ok=True)
        tuples, old = 0, {path.name for path in folder.iterdir() if _EXPORTED.match(path.name)}
        for batch in self.all():
            for file in batch.files:
                name = f"{batch.number:09d}-{file.name}"
                if name in old:
                    old.remove(name)
                else:
                    _link(self.data_file(file.name), folder / name)
            tuples += batch.tuples
        for name in old:
            (folder / name).unlink()
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
        except (OSError, ValueError, LookupError, TypeError) as problem:
            raise InputError(f"{self._mark(consumer)}: cannot read how far it is: {problem}") from problem

    def clean(self) -> int:
        """Remove what every consumer is past, but for the last batch; returns how many batches went.

        A log without consumers keeps everything: it holds results.
        """
        consumers = [path.stem for path in (self.root / "consumers").glob("*.json")]
        if not consumers:
            return 0
        with self._writing:
            return self._clean(consumers)

    def _clean(self, consumers: Sequence[str]) -> int:
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
        """Bytes it takes on disk, where a small file takes as much as a block."""
        files = [self._manifest(batch.number), *(self.data_file(file.name) for file in batch.files)]
        return sum(file.stat().st_blocks * _BLOCK for file in files)

    def _remove(self, number: int) -> None:
        if self._manifest(number).exists():
            batch = self.batch(number)
            self._manifest(number).unlink()  # first: a manifest never names a file that is gone
            self._discard(batch.files)

    def sweep(self, upto: float = inf) -> int:
        """Remove files that no batch names: tasks that failed, or a driver that was killed, have left them.
        Of micro-batches up to this one; of those to come, and of the one under way, none may be there yet.

        All that is there is looked at once; then what has come since, which its names tell. Returns how many.
        """
        with self._writing:
            since = self._swept or _Swept(-inf, self.first() or 0)
            named, number = set[str](), since.number
            if not self._manifest(number).exists():  # it has been removed, or is still to come
                number = max(number, self.first() or 0)
            while self._manifest(number).exists() and (batch := self.batch(number)).epoch <= upto:
                named.update(file.name for file in batch.files)
                number += 1
            if not self._manifest(number).exists():
                self._check_nothing_follows(number)  # whose files would be taken for left
            left = [
                path
                for path in (self.root / "data").iterdir()
                if since.epoch < epoch_of(path.name) <= upto and path.name not in named
            ]
            for path in left:
                path.unlink(missing_ok=True)
            last = self.last()
            self._swept = _Swept(min(upto, -1 if last is None else last.epoch), number)
            return len(left)

    def close(self) -> None:
        """Nothing more is published, and what is not by now is swept."""
        with self._writing:
            self._is_closed = True
        self._swept = None
        self.sweep()

    def _discard(self, files: Iterable[LogFile]) -> None:
        for file in files:
            self.data_file(file.name).unlink(missing_ok=True)

    def _manifest(self, number: int) -> Path:
        return self.root / "batches" / f"{number:09d}.json"

    def _mark(self, consumer: str) -> Path:
        return self.root / "consumers" / f"{consumer}.json"


def file_name(epoch: int | None) -> str:
    """Of a new file: it tells the micro-batch it was written in, where that is known."""
    return f"{'' if epoch is None else f'{epoch}-'}{uuid.uuid4().hex}.parquet"


def epoch_of(name: str) -> float:
    """The micro-batch that a file was written in; of those that do not tell, one before all others."""
    epoch, dash, _ = name.partition("-")
    return int(epoch) if dash and epoch.isdecimal() else -1


def _link(file: Path, target: Path) -> None:
    """Files never change, so they need not be there twice; some file systems have no links."""
    try:
        target.hardlink_to(file)
    except OSError:
        unfinished = target.with_name(f".{target.name}")
        shutil.copyfile(file, unfinished)
        unfinished.rename(target)
