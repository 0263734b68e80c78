"""Taps inside an operator's stages: they bind the stages to the operator's executors, and measure.

An operator's last stage ends in the exit tap: it writes what the operator gives to the
stream log and passes on one row per task that says what was written and how long it took.
So the driver collects a few rows, and only what a successful task wrote is ever published.
A stage before a shuffle ends in an entry tap, which leaves word for the driver.
Operators that share a query share these taps, and are measured as one. In Spark's plans they have the name
that `stages` looks for.
"""

import json
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.files import put_on_disk
from penstock.runtimes.spark import host_load
from penstock.runtimes.spark.daemon import executor_id
from penstock.runtimes.spark.stream_log import file_name

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import Row
    from pyspark.sql.types import StructType

REPORT_SCHEMA = (
    f"file string, tuples long, executor string, began_s double, ended_s double, {host_load.SCHEMA}"
)

STARTED, _FREE, TRIED = ".started", ".free", ".tried"  # files of executors that get warm
_GO = "go"  # and of the driver
_LEFT_TO_THEM_S = 0.5  # a trial's tasks, by executors that are warm, at the most
_TAKEN_S = 0.15  # the next task by one that is free
_SAMPLED = 10  # tuples that a new executor tries its work on

_BATCH = "streaming.sql.batchId"  # Spark's name for it

Tap = Callable[[Iterator["RecordBatch"]], Iterator["RecordBatch"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """One task of an operator's last stage."""

    file: str
    tuples: int  # that left the operator
    executor: str
    began_s: float
    ended_s: float
    at_end: host_load.Reading = host_load.UNREAD

    @property
    def busy_s(self) -> float:
        return self.ended_s - self.began_s


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryReport:
    """One task of a stage before a shuffle."""

    executor: str
    busy_s: float


def report_of(row: "Row") -> TaskReport:
    values = row.asDict()
    at_end = host_load.Reading(**{name: values.pop(name) for name in host_load.Reading._fields})
    return TaskReport(**values, at_end=at_end)


def exit_tap(directory: str) -> Tap:
    """Writes what arrives into a file of this directory, and yields the report."""

    def penstock_tap(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        import pyarrow
        from pyarrow import parquet

        began_s, since_s = time.time(), time.perf_counter()  # a clock may be set meanwhile
        name, tuples, writer = file_name(_epoch()), 0, None
        for batch in batches:
            if writer is None:
                writer = parquet.ParquetWriter(os.path.join(directory, name), batch.schema)
            writer.write_batch(batch)
            tuples += batch.num_rows
        if writer is not None:
            writer.close()
            put_on_disk(os.path.join(directory, name))  # before anybody hears of it
        yield pyarrow.RecordBatch.from_pydict(
            {
                "file": [name],
                "tuples": [tuples],
                "executor": [executor_id()],
                "began_s": [began_s],
                "ended_s": [began_s + time.perf_counter() - since_s],
                **host_load.here().as_columns(),
            }
        )

    return penstock_tap


def _epoch() -> int | None:
    """The micro-batch that this task is of, if Spark says so."""
    from pyspark import TaskContext

    context = TaskContext.get()
    said = None if context is None else context.getLocalProperty(_BATCH)
    return None if said is None else int(said)


def inner_tap(directory: str, sample: str) -> Tap:
    """Ends the last stage of a chain that is followed by another in its query: says in a file of this
    directory what a task did, and keeps a few tuples as a sample; changes nothing."""

    def penstock_tap(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        began_s, since_s, tuples = time.time(), time.perf_counter(), 0
        for batch in batches:
            if batch.num_rows and not os.path.exists(sample):
                _keep(batch, Path(sample))
            tuples += batch.num_rows
            yield batch
        ended_s = began_s + time.perf_counter() - since_s
        word = {"executor": executor_id(), "tuples": tuples, "began_s": began_s, "ended_s": ended_s}
        _leave_word(directory, {**word, "at_end": host_load.here()._asdict()})

    return penstock_tap


def _keep(batch: "RecordBatch", sample: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    unfinished = sample.with_suffix(f".{uuid.uuid4().hex}")
    parquet.write_table(pyarrow.Table.from_batches([batch.slice(0, _SAMPLED)]), unfinished)
    unfinished.rename(sample)


def _leave_word(directory: str, word: dict[str, Any]) -> None:
    unfinished = Path(directory) / uuid.uuid4().hex
    unfinished.write_text(json.dumps(word))
    unfinished.rename(unfinished.with_suffix(".json"))


def inner_tasks(directory: Path) -> tuple[TaskReport, ...]:
    """What inner taps have said since the last call."""
    return tuple(
        TaskReport(file="", **{**word, "at_end": host_load.Reading(**word["at_end"])})
        for word in _words(directory)
    )


def _words(directory: Path) -> Iterator[dict[str, Any]]:
    for path in directory.glob("*.json"):
        yield json.loads(path.read_text())
        path.unlink()


def forget_words(directory: Path) -> None:
    """Also those that a power cut has left without their content, and halves."""
    for path in directory.iterdir():
        path.unlink(missing_ok=True)


def entry_tap(directory: str) -> Tap:
    """Says in a file of this directory how long its task took; changes nothing."""

    def penstock_tap(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        began = time.perf_counter()
        yield from batches
        _leave_word(directory, {"executor": executor_id(), "busy_s": time.perf_counter() - began})

    return penstock_tap


def entries(directory: Path) -> tuple[EntryReport, ...]:
    """What entry taps have said since the last call."""
    return tuple(EntryReport(**word) for word in _words(directory))


def trial_tap(sample: str, schema: "StructType", cold: frozenset[str] | None, place: str) -> Tap:
    """Gives the tuples of a file, as they are read from a stream, whatever comes in, on these executors
    (None: on all); nothing on others, which only wait until those have their tasks: else they would take
    all there are."""

    def tap(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        from penstock.runtimes.spark.log_source import tuples_in

        if cold is None or executor_id() in cold:
            for _ in batches:
                yield from tuples_in(sample, schema).to_batches()
        elif not _are_free(place):
            _wait(place, lambda: _are_free(place), _LEFT_TO_THEM_S)
            time.sleep(_TAKEN_S)

    return tap


def tried_tap(place: str) -> Tap:
    """Ends a trial: writes what arrives, as it will be written, and says that this executor is through."""
    write = exit_tap(place)

    def tap(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        yield from write(batches)
        _mark(place, TRIED)

    return tap


def held_until(executor: str, free: str, held: str) -> Callable[[Iterable[int]], None]:
    """A task that keeps this executor until a file appears; nothing on others."""

    def hold(_: Iterable[int]) -> None:
        if executor_id() == executor:
            Path(held).touch()
            while not Path(free).exists():
                time.sleep(0.05)

    return hold


def python_started(
    cold: frozenset[str] | None, place: str, patience_s: float
) -> Callable[[Iterable[int]], None]:
    """A task that keeps one of these executors (None: any) until all are let go; others only wait for a
    while until those have their tasks: else they would take all there are."""

    def start(_: Iterable[int]) -> None:
        if cold is None or executor_id() in cold:
            _mark(place, STARTED)
            _wait(place, lambda: _are_let_go(place))
            _mark(place, _FREE)
        else:
            _wait(place, lambda: _are_let_go(place) or marked(Path(place), STARTED) >= cold, patience_s)

    return start


def _mark(place: str, mark: str) -> None:
    with suppress(FileNotFoundError):  # nobody cares any more
        (Path(place) / f"{executor_id()}{mark}").touch()


def _wait(place: str, done: Callable[[], bool], longest_s: float = inf) -> None:
    deadline_s = time.monotonic() + longest_s
    while Path(place).exists() and not done() and time.monotonic() < deadline_s:
        time.sleep(0.02)


def marked(place: Path, mark: str) -> set[str]:
    """Executors that have come so far."""
    return {path.stem for path in place.glob(f"*{mark}")}


def _are_free(place: str) -> bool:
    """Those that were kept. One that got real work before that was not, and is warm by now."""
    return marked(Path(place), _FREE) >= marked(Path(place), STARTED)


def let_go(place: Path) -> None:
    """Of executors that were kept in this folder's name."""
    (place / _GO).touch()


def _are_let_go(place: str) -> bool:
    return (Path(place) / _GO).exists()
