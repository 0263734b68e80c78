"""What a run has measured, as Parquet files: one row per interval, written in parts while it goes on."""

from collections.abc import Mapping
from contextlib import nullcontext, suppress
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock.domain.errors import InputError
from penstock.files import write_whole
from penstock.live.record import Interval, row

if TYPE_CHECKING:
    from pyarrow import DataType, Schema

_ROWS = 500  # in a part: what a crash may lose, against files that there are after weeks
_TEXTS = ("changed", "reasons")
_COUNT = ".replicas"


class MetricsFolder:
    """The run's folder of metrics: an earlier run's parts stay, and this one's come after them.

    What fails to be written is still there for the next attempt.
    """

    def __init__(self, out: Path) -> None:
        self._folder = out / "metrics"
        self._waiting: list[dict[str, Any]] = []
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(f"{self._folder}: cannot write: {problem.strerror or problem}") from problem
        numbers = [_number(path) for path in self._folder.glob("part-*.parquet")]
        self._next = max(numbers, default=-1) + 1

    def interval(self, interval: Interval, began_s: float) -> None:
        self._waiting.append(row(interval, began_s))
        if len(self._waiting) >= _ROWS:
            self.write()

    def write(self) -> None:
        """All that has not been written yet, as one more part."""
        if not self._waiting:
            return
        import pyarrow
        from pyarrow import parquet

        content = BytesIO()
        table = pyarrow.Table.from_pylist(self._waiting, schema=_schema_of(self._waiting[0]))
        parquet.write_table(table, content)
        write_whole(self._folder / f"part-{self._next:03d}.parquet", content.getvalue())
        self._next += 1
        self._waiting = []

    def __enter__(self) -> "MetricsFolder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Where the run has failed, why it has is what must be told."""
        with suppress(InputError) if kind is not None else nullcontext():
            self.write()


def _schema_of(cells: Mapping[str, Any]) -> "Schema":
    """By the names of the columns: one in which nothing was measured has a type all the same."""
    import pyarrow

    def kind(name: str) -> "DataType":
        if name in _TEXTS:
            return pyarrow.string()
        return pyarrow.int64() if name.endswith(_COUNT) else pyarrow.float64()

    return pyarrow.schema([pyarrow.field(name, kind(name)) for name in cells])


def _number(part: Path) -> int:
    digits = part.stem.removeprefix("part-")
    return int(digits) if digits.isdecimal() else -1
