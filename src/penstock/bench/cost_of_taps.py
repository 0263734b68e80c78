"""What it costs to measure operators on Spark: the same work with taps and without, in the same run."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.bench.figure import Figure
from penstock.data.spark_session import spark_session
from penstock.runtimes.spark.taps import REPORT_SCHEMA, exit_tap

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession

STAGES = 2
_TUPLES = 200_000
_REPEATS = 5
_LEAST = 0.9  # of the throughput without taps
_SCHEMA = "id long, distance double, place string"


def run_spark_benchmarks(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """Throughput of an operator that parses records in Python, with and without taps."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as place, spark_session() as spark:
        stage(f"making {_TUPLES:,} records")
        records = Path(place) / "records"
        _records(spark).write.parquet(str(records))
        stage("the same work without taps and with them, in turns")
        ways = {"plain": _plain, "tapped": _tapped}
        best = dict.fromkeys(ways, float("inf"))
        for turn in range(_REPEATS):
            for name, way in ways.items():
                out = Path(place) / f"{name}-{turn}"
                began = time.perf_counter()
                way(spark.read.parquet(str(records)).mapInArrow(parsed, _SCHEMA), out)
                took = time.perf_counter() - began
                best[name] = min(best[name], took) if turn else best[name]  # the first one warms up
    yield Figure(name="records/s without taps", value=_TUPLES / best["plain"], unit="/s")
    yield Figure(name="records/s with an exit tap", value=_TUPLES / best["tapped"], unit="/s")
    yield Figure(
        name="throughput of a measured operator",
        value=best["plain"] / best["tapped"],
        unit="x",
        at_least=_LEAST,
    )


def parsed(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
    """Real work: a JSON record per tuple, and the great-circle distance between two points in it."""
    from math import asin, cos, radians, sin, sqrt

    import pyarrow

    for batch in batches:
        ids, distances, places = [], [], []
        for text in batch.column("value").to_pylist():
            record = json.loads(text)
            ends = record["from"], record["to"]
            (south, west), (north, east) = ([radians(degrees) for degrees in end] for end in ends)
            half = sin((north - south) / 2) ** 2 + cos(south) * cos(north) * sin((east - west) / 2) ** 2
            ids.append(record["id"])
            distances.append(2 * 6371.0 * asin(sqrt(half)))
            places.append(f"{round(ends[0][0], 2)},{round(ends[0][1], 2)}")
        yield pyarrow.RecordBatch.from_pydict({"id": ids, "distance": distances, "place": places})


def _records(spark: "SparkSession") -> "DataFrame":
    return spark.range(0, _TUPLES, 1, 2).selectExpr(
        "to_json(named_struct('id', id, 'from', array(40.5 + id % 997 / 1000, -74.2 + id % 991 / 1000), "
        "'to', array(40.5 + id % 983 / 1000, -74.2 + id % 977 / 1000), 'driver', "
        "sha2(string(id), 256))) AS value"
    )


def _plain(result: "DataFrame", out: Path) -> None:
    result.write.parquet(str(out))


def _tapped(result: "DataFrame", out: Path) -> None:
    out.mkdir()
    tuples = sum(row["tuples"] for row in result.mapInArrow(exit_tap(str(out)), REPORT_SCHEMA).collect())
    if tuples != _TUPLES:
        raise AssertionError(f"{tuples} of {_TUPLES} tuples came out")
