"""The ledger on Spark: entries are read, posted to accounts, then to branches.

    entries > read                no state
            > post                number and balance of every account
            > audit               number and total of every branch

Every query takes whole batches of its input in order, so the entries of a micro-batch are those that
follow the ones before it, however many they are. Within one they are sorted: what comes out depends on
the entries alone, not on micro-batches, replicas or restarts.
"""

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from penstock.apps.ledger.books import BRANCHES, Posted, entry, line_of, with_amount
from penstock.domain.objective import Objective
from penstock.reconfigure.method import Method
from penstock.runtimes.spark.stream_log import StreamLog
from penstock.runtimes.spark.topology import App

if TYPE_CHECKING:
    from pandas import DataFrame as Frame
    from pyarrow import RecordBatch, Table
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

SOURCE, RESULTS = "entries", "audit"
_LINES = "number long, line string"
_ENTRIES = "id long, account long, amount long"
_IN_ACCOUNTS = "id long, account long, amount long, number long, balance long"
_POSTED = (
    "id long, account long, number long, balance long, branch long, branch_number long, branch_total long"
)
_BOOK = "number long, total long"


def ledger(*, objective: Objective, max_replicas: int = 3, protocol: Method = Method.LIVE) -> App:
    app = App("ledger", objective=objective)
    entries = app.source(SOURCE, schema=_LINES)
    read = app.operator("read", read_lines, entries, max_replicas=max_replicas, protocol=protocol)
    accounts = app.operator("post", post, read, max_replicas=max_replicas, stateful=True, protocol=protocol)
    branches = app.operator(
        RESULTS, audit, accounts, max_replicas=max_replicas, stateful=True, protocol=protocol
    )
    app.sink("books", branches)
    return app


class Entries:
    """What is fed in: entries as lines."""

    total: int | None = None

    def table(self, first: int, count: int, *, entered_s: float) -> "Table":
        import pyarrow

        numbers = range(first, first + count)
        return pyarrow.table(
            {"number": list(numbers), "line": [line_of(entry(number)) for number in numbers]}
        )

    def end(self, number: int, *, entered_s: float) -> "Table":
        return self.table(number, 0, entered_s=entered_s)


def read_lines(lines: "DataFrame") -> "DataFrame":
    """lines(number long, line string) -> entries(id long, account long, amount long)."""
    return lines.mapInArrow(_read, _ENTRIES)


def post(entries: "DataFrame") -> "DataFrame":
    """entries -> in accounts(id, account, amount, number long, balance long)."""
    return entries.groupBy("account").applyInPandasWithState(
        _post, _IN_ACCOUNTS, _BOOK, "append", "NoTimeout"
    )


def audit(accounts: "DataFrame") -> "DataFrame":
    """in accounts -> posted(id, account, number, balance, branch, branch_number, branch_total)."""
    return (
        accounts.selectExpr("*", f"account % {BRANCHES} AS branch")
        .groupBy("branch")
        .applyInPandasWithState(_audit, _POSTED, _BOOK, "append", "NoTimeout")
    )


def _read(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
    import pyarrow

    for batch in batches:
        if batch.num_rows:  # columns without rows would have no type
            entries = (line.split(";") for line in batch.column("line").to_pylist())
            columns = zip(*(map(int, one) for one in entries), strict=True)
            names = ("id", "account", "amount")
            yield pyarrow.RecordBatch.from_pydict(dict(zip(names, map(list, columns), strict=True)))


def _post(_: tuple[int], frames: "Iterator[Frame]", state: "GroupState") -> "Iterator[Frame]":
    yield _booked(frames, state, "number", "balance", ["id", "account", "amount", "number", "balance"])


def _audit(_: tuple[int], frames: "Iterator[Frame]", state: "GroupState") -> "Iterator[Frame]":
    yield _booked(frames, state, "branch_number", "branch_total", Posted._fields)


def _booked(
    frames: "Iterator[Frame]", state: "GroupState", number: str, total: str, columns: Sequence[str]
) -> "Frame":
    """What comes to a book, in order, each with its running number and total."""
    from pandas import DataFrame as Frame

    rows = sorted((row for frame in frames for row in frame.to_dict("records")), key=itemgetter("id"))
    so_far: tuple[int, int] = state.get if state.exists else (0, 0)
    for row in rows:
        so_far = with_amount(so_far, row["amount"])
        row[number], row[total] = so_far
    state.update(so_far)
    return Frame({column: [row[column] for row in rows] for column in columns})


def books_of(results: StreamLog) -> Iterator[Posted]:
    """All that has come out, in the order in which it did."""
    from pyarrow import parquet

    for batch in results.all():
        for file in batch.files:
            rows = parquet.read_table(results.data_file(file.name)).to_pylist()
            yield from (Posted(**row) for row in rows)
