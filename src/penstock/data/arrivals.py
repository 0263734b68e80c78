"""Events to arrival rates, slot by slot, and what the rates are like: levels, transitions, statistics."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.window import Window

from penstock.data.events import slot_micros, slot_of
from penstock.domain.errors import InputError

# Slots in a row without any event after which nobody was listening: an hour of minutes.
# A taxi trace has no empty minute in a year; a collector that pauses does so for minutes.
GAP_SLOTS = 60


def counts_per_slot(events: DataFrame, *, slot_s: float) -> DataFrame:
    """events(at timestamp, ...) -> counts(slot timestamp, count bigint) of the slots with any."""
    return events.groupBy(slot_of(f.col("at"), slot_s).alias("slot")).agg(f.count("*").alias("count"))


def arrival_rates(events: DataFrame, *, slot_s: float, gap_slots: int = GAP_SLOTS) -> DataFrame:
    """events(at timestamp, ...) -> rates(slot timestamp, rate_per_s double), in order of time."""
    return rates_of_counts(counts_per_slot(events, slot_s=slot_s), slot_s=slot_s, gap_slots=gap_slots)


def rates_of_counts(counts: DataFrame, *, slot_s: float, gap_slots: int = GAP_SLOTS) -> DataFrame:
    """counts(slot timestamp, count bigint) -> rates(slot timestamp, rate_per_s double), in order of time.

    A slot without events has rate 0. More than `gap_slots` of them in a row are a gap in
    coverage: nothing is known there, and no rate is given.
    """
    if gap_slots < 0:
        raise InputError(f"gap of {gap_slots} slots; it cannot be negative")
    width = slot_micros(slot_s)
    here = f.unix_micros("slot")
    # One row per slot, not per event: a year of minutes is half a million, and one task orders them.
    following = f.lead(here).over(Window.orderBy("slot"))
    covered = f.coalesce(following - here <= (gap_slots + 1) * width, f.lit(False))
    last = f.when(covered, following - width).otherwise(here)
    filled = counts.select("count", here.alias("first"), last.alias("last")).withColumn(
        "micros", f.explode(f.sequence("first", "last", f.lit(width)))
    )
    rate = f.when(f.col("micros") == f.col("first"), f.col("count") / f.lit(float(slot_s))).otherwise(0.0)
    return filled.select(f.timestamp_micros("micros").alias("slot"), rate.alias("rate_per_s")).orderBy("slot")


def coverage_gaps(rates: DataFrame, *, slot_s: float) -> DataFrame:
    """rates(slot timestamp, ...) -> gaps(since timestamp, slots bigint), where no rate is known."""
    width = slot_micros(slot_s)
    here = f.unix_micros("slot")
    following = f.lead(here).over(Window.orderBy("slot"))
    missing = ((following - here) / f.lit(width) - 1).cast("bigint")
    found = rates.select(f.timestamp_micros(here + width).alias("since"), missing.alias("slots"))
    return found.where(f.col("slots") > 0)


def level_of(rate: Column, *, levels: int, max_rate: float) -> Column:
    """The learners' level of a rate: equal steps up to `max_rate`, everything above in the highest."""
    return f.least(f.floor(rate / f.lit(max_rate / levels)), f.lit(levels - 1)).cast("int")


def level_transitions(rates: DataFrame, *, slot_s: float, levels: int, max_rate: float) -> DataFrame:
    """rates(slot timestamp, rate_per_s double) -> transitions(level, next_level, count, probability).

    Equation (5) of Russo 2018: how often the level went from one to the other, over how often
    it went anywhere. Only neighbouring slots count: nothing is known across a gap.
    """
    levelled = rates.withColumn("level", level_of(f.col("rate_per_s"), levels=levels, max_rate=max_rate))
    steps = _pairs(levelled, "level", slots=1, slot_s=slot_s)
    counted = steps.groupBy("level", f.col("later").alias("next_level")).agg(f.count("*").alias("count"))
    leaving = counted.groupBy("level").agg(f.sum("count").alias("all"))
    share = (f.col("count") / f.col("all")).alias("probability")
    return counted.join(leaving, "level").select("level", "next_level", "count", share)


def _pairs(rates: DataFrame, column: str, *, slots: int, slot_s: float) -> DataFrame:
    """rates(slot, column, ...) -> pairs(column, later): the values of slots so many apart."""
    apart = slots * slot_micros(slot_s)
    later = rates.select(
        f.timestamp_micros(f.unix_micros("slot") - apart).alias("slot"), f.col(column).alias("later")
    )
    return rates.select("slot", column).join(later, "slot").select(column, "later")


def trace_statistics(
    rates: DataFrame, *, slot_s: float, levels: int, max_rate: float, lags: tuple[int, ...] = (1, 60, 1440)
) -> DataFrame:
    """rates(slot timestamp, rate_per_s double) -> one row(slots, mean, ..., autocorrelation_<lag>, ...).

    The same figures as `penstock.data.statistics.describe` has for a trace in memory.
    """
    rate = f.col("rate_per_s")
    shares = {"p5": 0.05, "median": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}
    whole = rates.agg(
        f.count("*").alias("slots"),
        f.min(rate).alias("minimum"),
        f.avg(rate).alias("mean"),
        f.stddev_pop(rate).alias("deviation"),
        *(f.percentile(rate, share).alias(name) for name, share in shares.items()),
        f.max(rate).alias("maximum"),
        f.count_if(rate == 0).alias("zeros"),
    )
    mean = whole.select("mean")
    centred = rates.join(f.broadcast(mean)).select("slot", (rate - f.col("mean")).alias("centred"))
    variance = centred.agg(f.sum(f.col("centred") ** 2).alias("total"))
    for lag in lags:
        products = _pairs(centred, "centred", slots=lag, slot_s=slot_s).agg(
            f.sum(f.col("centred") * f.col("later")).alias("product")
        )
        name = f"autocorrelation_{lag}"
        known = f.when(f.col("total") > 0, f.col("product") / f.col("total")).alias(name)
        whole = whole.crossJoin(products.crossJoin(variance).select(known))
    levelled = rates.withColumn("level", level_of(rate, levels=levels, max_rate=max_rate))
    steps = _pairs(levelled, "level", slots=1, slot_s=slot_s)
    same = (f.col("level") == f.col("later")).cast("double")
    return whole.crossJoin(steps.agg(f.avg(same).alias("level_persistence")))
