"""What stands inside an operator's stages: it binds them to the operator's executors, and measures.

An operator's last stage ends in the exit tap: it writes what the operator gives to the
stream log and passes on one row per task that says what was written and how long it took.
So the driver collects a few rows, and only what a successful task wrote is ever published.
Inner taps stand between operators that share a query; they leave word for the exit tap of
their task in a file on the node. A stage before a shuffle begins with an entry tap, which
leaves word for the driver.
"""

import json
import os
import socket
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import Row

REPORT_SCHEMA = (
    "file string, tuples long, partition long, host string, began_s double, ended_s double, inner string"
)

Tap = Callable[[Iterator["RecordBatch"]], Iterator["RecordBatch"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerReport:
    """One fused operator in one task: tuples that left it, and time spent waiting for them."""

    operator: str
    tuples: int
    waited_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """One task of an operator's last stage."""

    file: str
    tuples: int  # that left the operator
    partition: int
    host: str
    began_s: float
    ended_s: float
    inner: tuple[InnerReport, ...]

    @property
    def busy_s(self) -> float:
        return self.ended_s - self.began_s


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryReport:
    """One task of a stage before a shuffle."""

    host: str
    busy_s: float


def report_of(row: "Row") -> TaskReport:
    said: dict[str, Any] = row.asDict()
    said["inner"] = tuple(InnerReport(**one) for one in json.loads(said["inner"]))
    return TaskReport(**said)


def exit_tap(directory: str) -> Tap:
    """Writes what arrives into a file of this directory, and yields the report."""

    def tap(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        import pyarrow
        from pyarrow import parquet

        began_s = time.time()
        name = f"{uuid.uuid4().hex}.parquet"
        tuples, writer = 0, None
        for batch in batches:
            if writer is None:
                writer = parquet.ParquetWriter(os.path.join(directory, name), batch.schema)
            writer.write_batch(batch)
            tuples += batch.num_rows
        if writer is not None:
            writer.close()
        attempt, partition = _task()
        yield pyarrow.RecordBatch.from_pydict(
            {
                "file": [name],
                "tuples": [tuples],
                "partition": [partition],
                "host": [host()],
                "began_s": [began_s],
                "ended_s": [time.time()],
                "inner": [json.dumps(_collected(attempt))],
            }
        )

    return tap


def inner_tap(operator: str, position: int) -> Tap:
    """Counts what leaves a fused operator and the time waited for it; changes nothing."""

    def tap(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        tuples, waited_s, asked = 0, 0.0, time.perf_counter()
        for batch in batches:
            waited_s += time.perf_counter() - asked
            tuples += batch.num_rows
            yield batch
            asked = time.perf_counter()
        waited_s += time.perf_counter() - asked
        attempt, _ = _task()
        word = {"operator": operator, "tuples": tuples, "waited_s": waited_s}
        _words(attempt, position).write_text(json.dumps(word))

    return tap


def entry_tap(directory: str) -> Tap:
    """Says in a file of this directory how long its task took; changes nothing."""

    def tap(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
        began = time.perf_counter()
        yield from batches
        word = {"host": host(), "busy_s": time.perf_counter() - began}
        unfinished = Path(directory) / uuid.uuid4().hex
        unfinished.write_text(json.dumps(word))
        unfinished.rename(unfinished.with_suffix(".json"))

    return tap


def entries(directory: Path) -> tuple[EntryReport, ...]:
    """What entry taps have said since the last call."""
    found = []
    for path in directory.glob("*.json"):
        found.append(EntryReport(**json.loads(path.read_text())))
        path.unlink()
    return tuple(found)


def warm_tap(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
    """Keeps its executor for a moment, so that others get a task of their own."""
    from pyarrow import parquet

    _ = parquet.ParquetWriter  # what the exit tap will need
    yield from batches
    time.sleep(0.2)


def host() -> str:
    """The address of this node: every local worker has one of its own."""
    return os.environ.get("SPARK_LOCAL_IP") or socket.gethostname()


def _task() -> tuple[int, int]:
    from pyspark import TaskContext

    context = TaskContext.get()
    return (context.taskAttemptId(), context.partitionId()) if context is not None else (0, 0)


def _words(attempt: int, position: int) -> Path:
    # Attempts are numbered per application; the parent is this application's executor.
    return Path(tempfile.gettempdir()) / f"penstock-tap-{os.getppid()}-{attempt}-{position:02d}.json"


def _collected(attempt: int) -> list[dict[str, Any]]:
    found = sorted(Path(tempfile.gettempdir()).glob(f"penstock-tap-{os.getppid()}-{attempt}-*.json"))
    said = [json.loads(path.read_text()) for path in found]
    for path in found:
        path.unlink(missing_ok=True)
    return said
