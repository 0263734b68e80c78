"""How far behind its sources a query is, from what Spark reports of its micro-batches."""

import json
from typing import Any

import pytest

from penstock.runtimes.spark.progress import reported, rows_behind


def source(
    begin: Any, end: Any, latest: Any, *, rows: int = 10, metrics: dict[str, str] | None = None
) -> dict[str, Any]:
    names = ("startOffset", "endOffset", "latestOffset")
    offsets = {name: json.dumps(value) for name, value in zip(names, (begin, end, latest), strict=True)}
    return {**offsets, "numInputRows": rows, "metrics": metrics or {}}


@pytest.mark.parametrize(
    ("offsets", "rows", "behind"),
    [
        # Kafka, two partitions: 4 + 6 rows taken, 5 + 7 left.
        (({"t": {"0": 0, "1": 0}}, {"t": {"0": 4, "1": 6}}, {"t": {"0": 9, "1": 13}}), 10, 12),
        # Half of the offsets are markers of transactions, which are no rows.
        (({"t": {"0": 0}}, {"t": {"0": 20}}, {"t": {"0": 40}}), 10, 10),
        # A partition that is new since the batch before.
        (({"t": {"0": 5}}, {"t": {"0": 10, "1": 5}}, {"t": {"0": 10, "1": 8}}), 10, 3),
        # Offsets that count seconds of 40 rows each.
        ((1, 3, 6), 80, 120),
        # Nothing taken and nothing there.
        (({"t": {"0": 5}}, {"t": {"0": 5}}, {"t": {"0": 5}}), 0, 0),
    ],
)
def test_an_offset_is_worth_as_many_rows_as_the_batch_took_for_its_own(
    offsets: tuple[Any, Any, Any], rows: int, behind: float
) -> None:
    assert rows_behind(source(*offsets, rows=rows)) == behind


@pytest.mark.parametrize(
    "one",
    [
        source({"logOffset": 3}, {"logOffset": 4}, None),  # files
        source({"version": 1, "id": "a"}, {"version": 2, "id": "a"}, {"version": 9, "id": "a"}),  # a table
        source(None, 3, 6),  # the first batch: nobody knows what an offset is worth
        {"numInputRows": 1, "startOffset": "None", "endOffset": "None", "latestOffset": "None"},
    ],
)
def test_a_source_that_does_not_say_is_unknown_and_not_at_zero(one: dict[str, Any]) -> None:
    assert rows_behind(one) is None


def test_metrics_stand_in_for_a_latest_offset() -> None:
    lags = {"avgOffsetsBehindLatest": "6.0", "maxOffsetsBehindLatest": "7", "minOffsetsBehindLatest": "5"}
    ends = {"t": {"0": 4, "1": 6}}
    assert rows_behind(source(None, ends, None, metrics=lags)) == 12
    assert rows_behind(source(None, "opaque", None, metrics=lags)) == 7  # at least


def test_a_batch_is_behind_what_any_of_its_sources_says() -> None:
    known, unknown = source(0, 10, 15), source({"logOffset": 3}, {"logOffset": 4}, None)
    progress = {
        "batchId": 3,
        "numInputRows": 20,
        "timestamp": "1970-01-01T00:01:40.500Z",
        "durationMs": {"triggerExecution": 1500},
    }
    assert reported({**progress, "sources": [known, unknown]}) == (3, 20, 100.5, 1.5, 5)
    assert reported({**progress, "sources": [unknown]}).behind is None
