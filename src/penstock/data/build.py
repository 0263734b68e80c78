"""Raw files to a trace, in one pass over good data; bad rows cost a second look at the files they are in."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from penstock.data.arrivals import GAP_SLOTS, coverage_gaps, rates_of_counts
from penstock.data.events import EPOCH, accelerate, amplify, slot_of
from penstock.data.quarantine import health, numbered, refuse_mostly_bad
from penstock.data.raw import EARLIEST, LATEST, is_bad, plain_path, spark_path
from penstock.data.sources import Kind
from penstock.domain.errors import InputError
from penstock.domain.trace import Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How events become a trace. Slots are of accelerated time."""

    slot_s: float = 60.0
    gap_slots: int = GAP_SLOTS
    acceleration: float = 1.0
    amplification: float = 1.0
    seed: int = 1  # of the surrogates
    since: datetime = EARLIEST  # rows of other times are bad
    until: datetime = LATEST


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A trace and what was found on the way."""

    trace: Trace
    rows: int  # surrogates and bad ones included
    bad: int
    start: datetime  # of the first slot
    gaps: tuple[tuple[datetime, int], ...]  # since when, how many slots
    quarantine: DataFrame | None  # file, line, reason, row; None if there is nothing bad


def build_trace(spark: SparkSession, kind: Kind, files: Sequence[str], recipe: Recipe, *, name: str) -> Built:
    """Read, check, count per slot; an error if a file is mostly bad or nothing is left."""
    # Surrogates are drawn by the whole row, not by its time alone.
    look = kind.first_look if recipe.amplification == 1 else kind.second_look
    parsed = look(spark, files, recipe.since, recipe.until)
    tallied = tally(parsed, recipe).cache()
    try:
        found = (
            tallied.where(f.col("bad_file").isNotNull())
            .groupBy("bad_file")
            .agg(f.sum("count").alias("count"))
        )
        bad = {row["bad_file"]: int(row["count"]) for row in found.collect()}
        quarantine = _quarantine(spark, kind, sorted(bad), recipe) if bad else None
        counts = tallied.where(f.col("slot").isNotNull()).select("slot", "count")
        rates = rates_of_counts(counts, slot_s=recipe.slot_s, gap_slots=recipe.gap_slots).cache()
        table = rates.toArrow()
        if not table.num_rows:
            raise InputError(f"{files[0]}: no rows in it")
        good = counts.agg(f.sum("count").alias("count")).first()
        gaps = coverage_gaps(rates, slot_s=recipe.slot_s).orderBy("since")
        missing = gaps.select((f.unix_micros("since") / 1e6).alias("since"), "slots").collect()
        rates.unpersist()
    finally:
        tallied.unpersist()
    return Built(
        trace=Trace(name, np.asarray(table.column("rate_per_s").to_numpy(), dtype=np.float64)),
        rows=(int(good["count"]) if good else 0) + sum(bad.values()),
        bad=sum(bad.values()),
        start=_as_it_was(table.column("slot")[0].as_py(), recipe),
        gaps=tuple(
            (_as_it_was(datetime.fromtimestamp(row["since"], UTC), recipe), row["slots"]) for row in missing
        ),
        quarantine=quarantine,
    )


def _as_it_was(accelerated: datetime, recipe: Recipe) -> datetime:
    return EPOCH + (accelerated - EPOCH) * recipe.acceleration


def tally(parsed: DataFrame, recipe: Recipe) -> DataFrame:
    """parsed(at timestamp, ..., file, problem) -> counts(slot timestamp, bad_file string, count bigint).

    Good rows have a slot, bad ones a file, a header neither. Without surrogates not a filter
    anywhere: Spark would move it below the parsing and parse every line again for it.
    """
    columns = parsed.select("at", "file", "problem")
    if recipe.amplification != 1:
        good = parsed.where(f.col("problem").isNull())
        slot_s = recipe.slot_s * recipe.acceleration
        more = amplify(good, factor=recipe.amplification, slot_s=slot_s, seed=recipe.seed)
        columns = columns.where(f.col("problem").isNotNull()).union(more.select("at", "file", "problem"))
    if recipe.acceleration != 1:
        columns = accelerate(columns, factor=recipe.acceleration)
    slot = f.when(f.col("problem").isNull(), slot_of(f.col("at"), recipe.slot_s))
    bad_file = f.when(is_bad(), f.col("file"))
    return columns.groupBy(slot.alias("slot"), bad_file.alias("bad_file")).agg(f.count("*").alias("count"))


def _quarantine(spark: SparkSession, kind: Kind, files: Sequence[str], recipe: Recipe) -> DataFrame:
    again = [spark_path(Path(plain_path(file))) if file.startswith("file:") else file for file in files]
    parsed = kind.second_look(spark, again, recipe.since, recipe.until)
    bad_rows = numbered(parsed)
    refuse_mostly_bad(health(parsed), bad_rows)
    return bad_rows
