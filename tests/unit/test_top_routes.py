"""Parts of top-routes that need no Spark: beats, and the file of results."""

from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from penstock.apps.top_routes.query import BEAT, LATEST, TRIP, export, top_routes, with_beats
from penstock.apps.top_routes.ranking import NEVER_S
from penstock.runtimes.spark.stream_log import LogFile, StreamLog


def _trips(*rows: tuple[str, int, int]) -> pyarrow.RecordBatch:
    return pyarrow.RecordBatch.from_pylist(
        [{"kind": kind, "number": number, "dropoff_s": dropoff_s} for kind, number, dropoff_s in rows]
    )


def _beaten(*batches: pyarrow.RecordBatch) -> list[tuple[str, int, int]]:
    rows = [row for batch in with_beats(iter(batches)) for row in batch.to_pylist()]
    return [(row["kind"], row["number"], row["dropoff_s"]) for row in rows]


def test_after_the_trips_come_a_beat_per_time_and_the_latest_again() -> None:
    first = [(TRIP, 0, 100), (TRIP, 1, 100), (TRIP, 2, 160)]
    second = [(TRIP, 3, 160), (TRIP, 4, 161)]
    beats = [(BEAT, 1, 100), (BEAT, 3, 160), (BEAT, 4, 161), (LATEST, 4, 161)]
    assert _beaten(_trips(*first), _trips(*second)) == [*first, *second, *beats]


def test_everybody_hears_of_the_end_and_of_the_last_time_before_it() -> None:
    rows = [(TRIP, 0, 100), (BEAT, 1, NEVER_S)]
    heard = [(BEAT, 0, 100), (LATEST, 0, 100), (LATEST, 1, NEVER_S)]
    assert _beaten(_trips(*rows)) == [*rows, *heard]
    assert _beaten(_trips(rows[1])) == [rows[1], (LATEST, 1, NEVER_S)]


def test_a_partition_without_trips_has_no_beats() -> None:
    assert _beaten() == []


def test_results_are_written_as_the_challenge_asks(tmp_path: Path) -> None:
    log = StreamLog(tmp_path / "log").create()
    table = pyarrow.table(
        {
            "pickup_s": [1356998400, 1356998340],
            "dropoff_s": [1356998520, 1356998460],
            "entered_s": [7.5, 7.25],
            "routes": [[156160157161, 1002003300], [1002003300]],
        }
    )
    parquet.write_table(table, log.data_file("one.parquet"))
    log.publish(
        epoch=0, files=[LogFile(name="one.parquet", tuples=2)], published_at_s=9.0, origins=((7.5, 2),)
    )
    assert export(log, tmp_path / "top-routes.csv") == 2
    assert (tmp_path / "top-routes.csv").read_text().splitlines() == [
        "2012-12-31 23:59:00,2013-01-01 00:01:00,1.2,3.300," + "NULL," * 18 + "1.750",
        "2013-01-01 00:00:00,2013-01-01 00:02:00,156.160,157.161,1.2,3.300," + "NULL," * 16 + "1.500",
    ]


@pytest.mark.parametrize("max_replicas", [1, 3])
def test_seven_operators_run_in_three_queries(max_replicas: int) -> None:
    app = top_routes(max_replicas=max_replicas)
    assert [len(chain.operators) for chain in app.chains()] == [4, 2, 1]
    assert [chain.max_replicas for chain in app.chains()] == [max_replicas, max_replicas, 1]
