"""Transforms on small tables, against counting by hand and plain Python."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.data.arrivals import (
    arrival_rates,
    coverage_gaps,
    level_transitions,
    trace_statistics,
)
from penstock.data.events import accelerate, amplify, key_frequencies
from penstock.data.statistics import describe
from penstock.domain.errors import InputError
from penstock.domain.trace import Trace

START = datetime(2020, 1, 1, tzinfo=UTC)


def events(spark: SparkSession, *seconds: float, key: str = "k") -> DataFrame:
    rows = [(START + timedelta(seconds=second), key) for second in seconds]
    return spark.createDataFrame(rows, "at timestamp, key string")


def seconds_of(table: DataFrame, column: str) -> list[float]:
    found = table.selectExpr(
        f"round((unix_micros({column}) - {int(START.timestamp())}000000L) / 1e6, 6) AS s"
    )
    return sorted(row["s"] for row in found.collect())


def rates_table(
    spark: SparkSession, rates: list[float], *, without: frozenset[int] = frozenset()
) -> DataFrame:
    rows = [(START + timedelta(minutes=slot), rate) for slot, rate in enumerate(rates) if slot not in without]
    return spark.createDataFrame(rows, "slot timestamp, rate_per_s double")


def test_empty_slots_are_zeros_and_gaps_in_coverage_are_nothing(spark: SparkSession) -> None:
    seen = events(spark, 0, 1, 59.9, 60, 240, 600)
    rates = arrival_rates(seen, slot_s=60, gap_slots=3)
    found = [(round(60 * row["rate_per_s"])) for row in rates.collect()]
    # Slots 0 and 1, two empty ones, slot 4; five empty ones are a gap; slot 10.
    assert found == [3, 1, 0, 0, 1, 1]
    assert seconds_of(rates, "slot") == [0, 60, 120, 180, 240, 600]
    gaps = coverage_gaps(rates, slot_s=60)
    assert seconds_of(gaps, "since") == [300]
    assert [row["slots"] for row in gaps.collect()] == [5]


def test_a_stretch_of_exactly_as_many_empty_slots_is_still_covered(spark: SparkSession) -> None:
    assert arrival_rates(events(spark, 0, 240), slot_s=60, gap_slots=3).count() == 5
    assert arrival_rates(events(spark, 0, 300), slot_s=60, gap_slots=3).count() == 2


def test_acceleration_divides_the_time_between_events(spark: SparkSession) -> None:
    faster = accelerate(events(spark, 0, 30, 100), factor=10, origin=START)
    assert seconds_of(faster, "at") == [0, 3, 10]
    with pytest.raises(InputError, match="acceleration by 0"):
        accelerate(faster, factor=0)


def test_amplification_multiplies_every_slot_and_every_route_alike(spark: SparkSession) -> None:
    few = events(spark, 0, 10, 70, key="a").union(events(spark, 20, 200, key="b"))
    more = amplify(few, factor=5, slot_s=60, seed=1)
    assert Counter(row["key"] for row in more.collect()) == {"a": 15, "b": 10}
    assert Counter(int(second // 60) for second in seconds_of(more, "at")) == {0: 15, 1: 5, 3: 5}
    # The originals are still there, and surrogates are elsewhere in the slot.
    assert {0, 10, 20, 70, 200} <= set(seconds_of(more, "at"))
    assert len(set(seconds_of(more, "at"))) == 25


def test_surrogates_do_not_depend_on_partitions(spark: SparkSession) -> None:
    some = events(spark, *range(0, 600, 7))
    once = seconds_of(amplify(some.repartition(1), factor=2.5, slot_s=60, seed=3), "at")
    again = seconds_of(amplify(some.repartition(5), factor=2.5, slot_s=60, seed=3), "at")
    assert once == again
    assert once != seconds_of(amplify(some, factor=2.5, slot_s=60, seed=4), "at")
    assert len(once) == pytest.approx(2.5 * some.count(), rel=0.15)


def test_key_frequencies_of_a_slot_sum_to_one(spark: SparkSession) -> None:
    seen = events(spark, 0, 1, 2, key="a").union(events(spark, 3, 61, key="b"))
    found = {
        (int(second), row["key"]): (row["count"], row["frequency"])
        for row in key_frequencies(seen, key="key", slot_s=60).collect()
        for second in [(row["slot"].astimezone(UTC) - START).total_seconds()]
    }
    assert found == {(0, "a"): (3, 0.75), (0, "b"): (1, 0.25), (60, "b"): (1, 1.0)}


def test_transitions_are_counted_as_equation_5_says_and_not_across_a_gap(spark: SparkSession) -> None:
    rates = [5.0, 15.0, 15.0, 999.0, 5.0, 15.0, 5.0]  # levels 0 1 1 2 0 1 0 of width 10
    table = rates_table(spark, rates, without=frozenset({3}))
    found = level_transitions(table, slot_s=60, levels=3, max_rate=30)
    # Known steps: 0-1, 1-1, (1-2 and 2-0 are gone with slot 3), 0-1, 1-0.
    assert {
        (row["level"], row["next_level"]): (row["count"], row["probability"]) for row in found.collect()
    } == {
        (0, 1): (2, 1.0),
        (1, 1): (1, 0.5),
        (1, 0): (1, 0.5),
    }


def test_statistics_on_spark_are_those_in_memory(spark: SparkSession) -> None:
    rates = np.abs(np.cumsum(np.random.default_rng(2).normal(0, 30, 3000)) % 1200 - 600).round()
    expected = describe(Trace("t", rates), levels=30, max_rate=650)
    found = trace_statistics(
        rates_table(spark, rates.tolist()), slot_s=60, levels=30, max_rate=650, lags=(1, 60, 1440)
    ).collect()[0]
    for name in ("slots", "minimum", "mean", "deviation", "p5", "median", "p95", "p99", "p999", "maximum"):
        assert found[name] == pytest.approx(getattr(expected, name)), name
    for name in (
        "zeros",
        "level_persistence",
        "autocorrelation_1",
        "autocorrelation_60",
        "autocorrelation_1440",
    ):
        assert found[name] == pytest.approx(getattr(expected, name), rel=1e-9), name
