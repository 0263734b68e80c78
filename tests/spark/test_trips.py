"""Taxi trips, against plain Python over the same 10,004 real rows."""

import csv
from collections import Counter
from math import floor
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.data import raw
from penstock.data.arrivals import arrival_rates
from penstock.data.build import Recipe, build_trace
from penstock.data.events import trip_events
from penstock.data.routes import GRID_300, GRID_600, Grid, clean_trips, with_routes
from penstock.data.sources import KINDS
from penstock.data.trips import DEBS_2015, debs_trips


@pytest.fixture(scope="module")
def rows(real_trips: Path) -> list[list[str]]:
    with real_trips.open() as file:
        return list(csv.reader(file))


@pytest.fixture(scope="module")
def trips(spark: SparkSession, real_trips: Path) -> DataFrame:
    return raw.good(debs_trips(raw.lines(spark, [str(real_trips)]))).cache()


def plain_route(row: list[str], cells: int) -> str | None:
    """The formula of reference/debs2015-query1.md, cell by cell."""
    west, north = -74.913585, 41.474937
    east, south = 0.005986 * 300 / cells, 0.004491556 * 300 / cells
    found = []
    for longitude, latitude in ((float(row[6]), float(row[7])), (float(row[8]), float(row[9]))):
        x = 1 + floor((longitude - west) / east + 0.5)
        y = 1 + floor((north - latitude) / south + 0.5)
        if not (1 <= x <= cells and 1 <= y <= cells):
            return None
        found.append(f"{x}.{y}")
    return "-".join(found)


def test_every_field_of_every_row_is_read(trips: DataFrame, rows: list[list[str]]) -> None:
    read = trips.selectExpr(
        "medallion",
        "date_format(pickup_datetime, 'yyyy-MM-dd HH:mm:ss')",
        "trip_time_in_secs",
        "total_amount",
    ).collect()
    expected = Counter((row[0], row[2], int(row[4]), float(row[16])) for row in rows)
    assert Counter(tuple(row) for row in read) == expected
    assert trips.columns == list(DEBS_2015)


@pytest.mark.parametrize(("grid", "cells"), [(GRID_300, 300), (GRID_600, 600)])
def test_routes_are_those_of_plain_python(
    trips: DataFrame, rows: list[list[str]], grid: Grid, cells: int
) -> None:
    counted = with_routes(trips, grid=grid).groupBy("route").count().collect()
    expected = Counter(plain_route(row, cells) for row in rows)
    assert {row["route"]: row["count"] for row in counted} == dict(expected)


def test_of_the_first_10004_trips_178_are_outliers(trips: DataFrame) -> None:
    """As reference/debs2015-query1.md says."""
    assert trips.count() == 10_004
    assert clean_trips(trips).count() == 10_004 - 178


def test_trips_per_minute_are_those_of_plain_python(trips: DataFrame, rows: list[list[str]]) -> None:
    rates = arrival_rates(trip_events(trips), slot_s=60).selectExpr(
        "date_format(slot, 'yyyy-MM-dd HH:mm') AS minute", "rate_per_s"
    )
    expected = Counter(row[3][:16] for row in rows)
    assert {row["minute"]: round(60 * row["rate_per_s"], 9) for row in rates.collect()} == dict(expected)


def test_a_trace_of_the_trips_is_the_published_one_s_kind(
    spark: SparkSession, real_trips: Path, rows: list[list[str]]
) -> None:
    """Trips per minute read as tuples per second: time sixty times as fast, slots of a second."""
    recipe = Recipe(slot_s=1, acceleration=60)
    built = build_trace(spark, KINDS["debs2015"], [str(real_trips)], recipe, name="taxi")
    expected = Counter(row[3][:16] for row in rows)
    assert built.trace.rates.tolist() == [expected[minute] for minute in sorted(expected)]
    assert (built.rows, built.bad, built.gaps) == (10_004, 0, ())
    assert built.start.isoformat() == "2013-01-01T00:02:00+00:00"
