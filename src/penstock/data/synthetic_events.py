"""Trips, tweets and quotes, made up at any volume: text lines as the readers expect them.

How many come in each slot is drawn first (a table of slots), then every event's fields are
hashes of its place and the seed, so that any number of tasks makes the same lines.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Protocol

import numpy as np
import pyarrow
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from penstock.compiled import Floats, Ints
from penstock.data.debs_grid import FIRST_LATITUDE, FIRST_LONGITUDE
from penstock.data.events import EPOCH
from penstock.data.synthetic_taxi import taxi_rates
from penstock.data.synthetic_tweets import tweet_rates
from penstock.domain.errors import InputError

_TAXIS, _DRIVERS = 13_400, 30_000
_SYMBOLS = 2_836  # traded on NASDAQ on 30 October 2014 (De Matteis 2017, sec. 5.1)
_CENTRES = 40
_ROWS_A_FILE = 1_000_000
OUTLIERS = 0.0178  # 178 of the first 10,004 trips of 2013 start or end off the grid


def slot_counts(rates: Floats, *, rows: int, seed: int) -> Ints:
    """So many events, spread over slots in proportion to their rates."""
    if rows < 1:
        raise InputError(f"{rows} events; give at least one")
    counts: Ints = np.random.default_rng(seed).multinomial(rows, rates / rates.sum())
    return counts


def trip_lines(spark: SparkSession, *, rows: int, seed: int, slots: int | None = None) -> DataFrame:
    """-> lines(value string): DEBS 2015 trips of 2013, in order of drop-off by the minute.

    As many minutes as the trips of the published trace would fill, unless `slots` says otherwise.
    """
    minutes = slots or max(rows // 330, 1)
    counts = slot_counts(taxi_rates(slots=minutes, seed=seed).rates + 1e-9, rows=rows, seed=seed)
    events = _events(spark, counts, datetime(2013, 1, 1), slot_s=60)
    draw = _Draws(seed)
    ended = f.unix_seconds("slot") + f.floor(draw("second") * 60)
    lasted = f.floor(120 + 1500 * draw("time") * draw("time more"))
    miles = lasted / 3600 * 12
    off_grid = draw("outlier") < OUTLIERS
    # A few busy places and a city around them: popular routes are far more popular than others.
    start_east, start_south = _place(draw, "start")
    end_east, end_south = _place(draw, "end")
    fare = 2.5 + 2.5 * miles
    tip = f.when(draw("card") < 0.5, 0.2 * fare).otherwise(0.0)
    fields = (
        f.upper(f.md5(f.concat(f.lit("taxi "), f.floor(draw("taxi") * _TAXIS).cast("string")))),
        f.upper(f.md5(f.concat(f.lit("driver "), f.floor(draw("driver") * _DRIVERS).cast("string")))),
        _time(ended - lasted),
        _time(ended),
        lasted.cast("string"),
        _number(miles, 2),
        *(
            _number(f.when(off_grid, 0.0).otherwise(degrees), 6)
            for degrees in (
                FIRST_LONGITUDE + start_east,
                FIRST_LATITUDE - start_south,
                FIRST_LONGITUDE + end_east,
                FIRST_LATITUDE - end_south,
            )
        ),
        f.when(draw("card") < 0.5, "CRD").otherwise("CSH"),
        _number(fare, 2),
        f.lit("0.50"),
        f.lit("0.50"),
        _number(tip, 2),
        f.lit("0.00"),
        _number(fare + tip + 1.0, 2),
    )
    return events.select(f.concat_ws(",", *fields).alias("value"))


def tweet_lines(spark: SparkSession, *, rows: int, seed: int, slots: int | None = None) -> DataFrame:
    """-> lines(value string): JSON tweets by the published trace's shape."""
    minutes = slots or max(rows // 2218, 1)
    counts = slot_counts(tweet_rates(slots=minutes, seed=seed).rates + 1e-9, rows=rows, seed=seed)
    events = _events(spark, counts, datetime(2020, 3, 1), slot_s=60)
    draw = _Draws(seed)
    at = f.timestamp_millis(f.unix_millis("slot") + f.floor(draw("time") * 60_000))
    tweet = f.struct(
        f.date_format(at, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").alias("created_at"),
        f.hex(f.xxhash64("slot", "nth", f.lit(seed))).alias("id"),
        f.concat(f.lit("user "), f.floor(1e6 * draw("user") ** 3).cast("string")).alias("user"),
    )
    return events.select(f.to_json(tweet).alias("value"))


def quote_lines(spark: SparkSession, *, rows: int, seed: int, slots: int | None = None) -> DataFrame:
    """-> lines(value string): quotes of a trading day, 9:30 to 16:00, in 2,836 symbols.

    The rate is highest after the opening and before the close; a symbol's share falls with
    its rank (Zipf), as the key frequencies of De Matteis 2017 do.
    """
    seconds = slots or int(6.5 * 3600)
    hour = np.arange(seconds) / max(seconds - 1, 1)
    smile = 0.35 + np.exp(-hour / 0.05) + 0.6 * np.exp(-(1 - hour) / 0.04)
    noise = np.random.default_rng(seed).gamma(4.0, 0.25, seconds)
    counts = slot_counts(smile * noise, rows=rows, seed=seed)
    events = _events(spark, counts, datetime(2014, 10, 30, 9, 30), slot_s=1)
    draw = _Draws(seed)
    rank = f.floor(f.pow(f.lit(float(_SYMBOLS)), draw("symbol")))  # P(rank) ~ 1 / rank
    at = f.timestamp_millis(f.unix_millis("slot") + f.floor(draw("time") * 1000))
    price = (
        5 + 195 * f.abs(f.sin(rank)) + 2 * f.sin(f.unix_seconds("slot") / 900 + rank) + 0.1 * draw("price")
    )
    fields = (
        f.date_format(at, "yyyy-MM-dd HH:mm:ss.SSS"),
        f.format_string("S%04d", rank),
        _number(price, 2),
        (100 * (1 + f.floor(20 * draw("volume") ** 4))).cast("string"),
    )
    return events.select(f.concat_ws(",", *fields).alias("value"))


class _Draws:
    """Numbers between 0 and 1, decided by the event's slot and number in it, the seed and what it is for."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def __call__(self, what: str) -> Column:
        bits = f.xxhash64("slot", "nth", f.lit(self._seed), f.lit(what))
        return bits.bitwiseAND(f.lit((1 << 53) - 1)) / f.lit(float(1 << 53))


def _events(spark: SparkSession, counts: Ints, start: datetime, *, slot_s: int) -> DataFrame:
    """counts -> events(slot timestamp, nth int), a file's worth per partition, in order of time."""
    first = round((start.replace(tzinfo=UTC) - EPOCH) / timedelta(seconds=1))
    slots = pyarrow.table({"second": first + slot_s * np.arange(counts.size), "count": counts})
    files = max(round(int(counts.sum()) / _ROWS_A_FILE), 1)
    some = spark.createDataFrame(slots).where(f.col("count") > 0).repartitionByRange(files, "second")
    return some.sortWithinPartitions("second").select(
        f.timestamp_seconds("second").alias("slot"), f.explode(f.sequence(f.lit(1), "count")).alias("nth")
    )


def _place(draw: _Draws, which: str) -> tuple[Column, Column]:
    """Degrees east and south of the grid's corner: near one of some centres, or anywhere in the city."""
    centre = f.floor(_CENTRES * draw(f"{which} centre") ** 2)
    close = 0.004 * (draw(f"{which} east") + draw(f"{which} west") - 1)
    also_close = 0.004 * (draw(f"{which} south") + draw(f"{which} north") - 1)
    in_town = draw(f"{which} in town") < 0.7
    east = f.when(in_town, 0.90 + 0.05 * f.abs(f.sin(centre * 2.4)) + close).otherwise(
        0.80 + 0.30 * draw(f"{which} far east")
    )
    south = f.when(in_town, 0.68 + 0.08 * f.abs(f.cos(centre * 1.7)) + also_close).otherwise(
        0.60 + 0.25 * draw(f"{which} far south")
    )
    return east, south


def _time(seconds: Column) -> Column:
    return f.date_format(f.timestamp_seconds(seconds), "yyyy-MM-dd HH:mm:ss")


def _number(value: Column, digits: int) -> Column:
    return value.cast(f"decimal(12,{digits})").cast("string")


class Lines(Protocol):
    """Makes the given number of lines."""

    def __call__(
        self, spark: SparkSession, *, rows: int, seed: int, slots: int | None = None
    ) -> DataFrame: ...


EVENTS: Mapping[str, Lines] = {"trips": trip_lines, "tweets": tweet_lines, "quotes": quote_lines}
