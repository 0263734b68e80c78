"""Taps inside an operator's stages: they bind the stages to the operator's executors, and measure.

An operator's last stage ends in the exit tap: it writes what the operator gives to the
stream log and passes on one row per task that says what was written and how long it took.
So the driver collects a few rows, and only what a successful task wrote is ever published.
A stage before a shuffle ends in an entry tap, which leaves word for the driver.
Operators that share a query share these taps, and are measured as one.
"""

import json
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import Row

REPORT_SCHEMA = "file string, tuples long, host string, began_s double, ended_s double"

Tap = Callable[[Iterator["RecordBatch"]], Iterator["RecordBatch"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """One task of an operator's last stage."""

    file: str
    tuples: int  # that left the operator
    host: str
    began_s: float
    ended_s: float

    @property
    def busy_s(self) -> float:
        return self.ended_s - self.began_s


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryReport:
    """One task of a stage before a shuffle."""

    host: str
    busy_s: float


def report_of(row: "Row") -> TaskReport:
    return TaskReport(**row.asDict())


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
        yield pyarrow.RecordBatch.from_pydict(
            {
                "file": [name],
                "tuples": [tuples],
                "host": [host()],
                "began_s": [began_s],
                "ended_s": [time.time()],
            }
        )

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
