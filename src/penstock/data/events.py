"""Events made faster, made more, and how their keys are spread; an event is any row with a time `at`."""

from datetime import UTC, datetime
from math import inf

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from penstock.domain.errors import InputError

_MICROSECONDS = 1_000_000
_MOST_SURROGATES = 10_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def trip_events(trips: DataFrame) -> DataFrame:
    """trips(dropoff_datetime timestamp, ...) -> events(at timestamp, ...): a trip counts when it ends."""
    return trips.withColumnRenamed("dropoff_datetime", "at")


def accelerate(events: DataFrame, *, factor: float, origin: datetime = EPOCH) -> DataFrame:
    """events(at timestamp, ...) -> the same, time since `origin` over `factor` (Cardellini 2018: 10)."""
    if not 0 < factor < inf:
        raise InputError(f"acceleration by {factor:g}; it must be positive and finite")
    start = f.unix_micros(f.lit(origin))
    faster = start + f.floor((f.unix_micros("at") - start) / f.lit(float(factor)))
    return events.withColumn("at", f.timestamp_micros(faster.cast("bigint")))


def amplify(events: DataFrame, *, factor: float, slot_s: float, seed: int) -> DataFrame:
    """events(at timestamp, ...) -> those and surrogates, `factor` times as many (Cardellini 2018, sec. 9: 5).

    A surrogate is its original at another time of the same slot: every slot's count and
    every route's grows by the same factor, so the arrival shape and the distribution of
    routes stay what they were. A fraction is kept by chance. Chance is a hash of the event
    and the seed, so partitions do not matter.
    """
    if not 1 <= factor <= _MOST_SURROGATES:
        raise InputError(f"amplification by {factor:g}; from 1 to {_MOST_SURROGATES:,}")
    # Where a row was read decides nothing: files are renamed, and blocks depend on the cores.
    columns = [name for name in events.columns if name not in ("file", "block", "line")]
    copies = f.lit(int(factor)) + (_chance(columns, seed, f.lit(-1)) < factor % 1).cast("int")
    copied = events.withColumn("copy", f.explode(f.sequence(f.lit(1), copies)))
    later = f.floor(_chance(columns, seed, f.col("copy")) * f.lit(slot_micros(slot_s)))
    surrogate = f.timestamp_micros(f.unix_micros(slot_of(f.col("at"), slot_s)) + later)
    return copied.withColumn("at", f.when(f.col("copy") == 1, f.col("at")).otherwise(surrogate)).drop("copy")


def _chance(columns: list[str], seed: int, draw: Column) -> Column:
    """Between 0 and 1, decided by the row, the seed and which draw it is."""
    bits = f.xxhash64(*(f.col(f"`{name}`") for name in columns), f.lit(seed), draw)
    return bits.bitwiseAND(f.lit((1 << 53) - 1)) / f.lit(float(1 << 53))


def slot_of(at: Column, slot_s: float) -> Column:
    """When the slot of this time begins; slots are counted from 1970."""
    width = slot_micros(slot_s)
    micros = f.unix_micros(at)
    return f.timestamp_micros(micros - f.pmod(micros, f.lit(width)))


def slot_micros(slot_s: float) -> int:
    """How long a slot is, in Spark's own unit."""
    width = round(slot_s * _MICROSECONDS) if slot_s > 0 and slot_s < 1e9 else 0
    if width < 1:
        raise InputError(f"slots of {slot_s:g} s; they must last from a microsecond to thirty years")
    return width


def key_frequencies(events: DataFrame, *, key: str, slot_s: float) -> DataFrame:
    """events(at timestamp, key, ...) -> frequencies(slot timestamp, key, count bigint, frequency double).

    The p_k of De Matteis 2017, measured per slot.
    """
    slotted = events.select(slot_of(f.col("at"), slot_s).alias("slot"), f.col(key).alias("key"))
    counted = slotted.groupBy("slot", "key").agg(f.count("*").alias("count"))
    in_slot = counted.groupBy("slot").agg(f.sum("count").alias("all"))
    share = (f.col("count") / f.col("all")).alias("frequency")
    return counted.join(in_slot, "slot").select("slot", "key", "count", share)
