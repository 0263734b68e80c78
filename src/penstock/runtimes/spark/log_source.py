"""A stream log as a source of Spark: the offset is the number of the next batch.

Runs in Python workers of the driver (offsets, partitions) and of the executors (reading),
so it imports little and keeps no state but its options.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from typing_extensions import override

from penstock.domain.errors import InputError
from penstock.runtimes.spark.partitions import shares
from penstock.runtimes.spark.stream_log import StreamLog

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Table
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

FORMAT = "penstock-log"
# Of one micro-batch: after a long stop it catches up in steps, and an executor's memory is no matter of luck.
_MOST_BATCHES = 1000
MOST_TUPLES = 50_000  # for one task


@dataclass(frozen=True, slots=True)
class Slices(InputPartition):
    """Parts of files that one task reads."""

    of: tuple[tuple[str, int, int], ...]  # (path, first tuple, how many)

    @property
    def value(self) -> Any:
        return self.of


class LogSource(DataSource):
    """`spark.readStream.format("penstock-log")` with options path, consumer, schema, intake."""

    @classmethod
    @override
    def name(cls) -> str:
        return FORMAT

    @override
    def schema(self) -> "StructType | str":
        return schema_of(self.options["schema"])

    @override
    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        return LogReader(
            StreamLog(Path(self.options["path"])),
            consumer=self.options["consumer"],
            intake=Path(self.options["intake"]),
            chunk=int(self.options.get("chunk", "1000")),
            schema=schema,
        )


def schema_of(given: str) -> "StructType | str":
    """As its author wrote it, or as Spark derived it."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(given)) if given.startswith("{") else given


def struct_of(given: str) -> "StructType":
    """The same, where there is a Spark session: Spark alone can read what an author wrote."""
    from pyspark.sql.types import StructType

    schema = schema_of(given)
    parsed = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(parsed, StructType):
        raise InputError(f"schema '{given}': a stream has columns; give names and types, as in 'x long'")
    return parsed


def tuples_in(path: str, schema: "StructType", first: int = 0, tuples: int = sys.maxsize) -> "Table":
    """A file of a stream, or a slice of it, with the columns of a schema, in the very types Spark wants.

    At any depth: what may be null and what may not, and times in UTC, where operators have written them in
    the time zone of the session. Whoever wrote it may have had other columns, in another order, or encoded.
    """
    from pyarrow import parquet
    from pyspark.sql.pandas.types import to_arrow_schema

    wanted = to_arrow_schema(schema, timezone="UTC")
    return parquet.read_table(path).slice(first, tuples).select(wanted.names).cast(wanted)


class LogReader(DataSourceStreamReader):
    """Reads every batch once, in order; says when one is no longer needed."""

    def __init__(
        self, log: StreamLog, *, consumer: str, intake: Path, chunk: int, schema: "StructType"
    ) -> None:
        self._log, self._consumer, self._intake, self._chunk = log, consumer, intake, chunk
        self._schema = schema

    @override
    def initialOffset(self) -> dict[str, Any]:
        return {"log": self._log.name, "batch": 0}

    @override
    def latestOffset(self, start: dict[str, Any], limit: "ReadLimit") -> dict[str, Any]:
        begin, intake = int(start["batch"]), intake_in(self._intake)
        end = begin if intake.held else min(self._log.end(begin), begin + _MOST_BATCHES)
        last = None if intake.held or end > begin else self._log.last()
        if last is not None and last.number > begin:
            raise InputError(
                f"stream '{self._log.name}': batch {begin} is gone, and this query has not taken it: "
                "its checkpoint is older than the stream"
            )
        if end > begin:
            each = MOST_TUPLES if intake.each is None else min(intake.each, MOST_TUPLES)
            end = self._log.end_of(begin, end, tuples=each * intake.parts)
        return {"log": self._log.name, "batch": end}

    @override
    def reportLatestOffset(self) -> dict[str, Any] | None:
        last = self._log.last()
        return {"log": self._log.name, "batch": 0 if last is None else last.number + 1}

    @override
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        batches = self._log.batches(int(start["batch"]), int(end["batch"]))
        files = [
            (str(self._log.data_file(file.name)), file.tuples) for batch in batches for file in batch.files
        ]
        return [Slices(tuple(part)) for part in shares(files, intake_in(self._intake).parts)]

    @override
    def read(self, partition: InputPartition) -> Iterator["RecordBatch"]:
        for path, first, tuples in partition.value:
            table = tuples_in(path, self._schema, first, tuples)
            yield from table.to_batches(max_chunksize=self._chunk)

    @override
    def commit(self, end: dict[str, Any]) -> None:
        self._log.passed(self._consumer, int(end["batch"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """How a query takes its input, from the next micro-batch on."""

    parts: int = 1  # tasks that share the work
    each: int | None = None  # tuples for one of them at most, as far as batches of the log can be told apart
    held: bool = False  # take nothing more, so that the query comes to rest between two batches


def intake_in(file: Path) -> Intake:
    """As written by whoever changes replicas or stops a query; the default until then."""
    known = {one.name for one in fields(Intake)}  # an earlier version may have written more
    try:
        written = json.loads(file.read_text(encoding="utf-8"))
        return Intake(**{name: value for name, value in written.items() if name in known})
    except FileNotFoundError:
        return Intake()
    except (OSError, ValueError, AttributeError) as problem:
        raise InputError(f"{file}: cannot read how much to take: {problem}") from problem
