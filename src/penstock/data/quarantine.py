"""The bad rows of raw files: where each one stands, and what is wrong with it.

Spark reads a file in blocks, side by side, and forgets line numbers. They are found in a
second look at those files only that have bad rows: rows of one block are numbered as they
are read, and a row's line is its number in the block and the lines of the blocks before.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.window import Window

from penstock.data.raw import HEADER, is_bad, plain_path
from penstock.domain.errors import InputError

MOSTLY = 0.5


def numbered(parsed: DataFrame) -> DataFrame:
    """parsed(..., file, block, row, problem) -> bad rows(file string, line bigint, reason, row string)."""
    if "line" in parsed.columns:
        return parsed.where(is_bad()).select("file", "line", f.col("problem").alias("reason"), "row")
    placed = parsed.select("file", "block", "row", "problem", f.monotonically_increasing_id().alias("id"))
    blocks = placed.groupBy("file", "block").agg(f.min("id").alias("first"), f.count("*").alias("count"))
    by_file = Window.partitionBy("file").orderBy("block")
    before = f.sum("count").over(by_file.rowsBetween(Window.unboundedPreceding, -1))
    blocks = blocks.select("file", "block", "first", f.coalesce(before, f.lit(0)).alias("before"))
    bad = placed.where(is_bad())
    return bad.join(f.broadcast(blocks), ["file", "block"]).select(
        "file",
        (f.col("before") + f.col("id") - f.col("first") + 1).alias("line"),
        f.col("problem").alias("reason"),
        "row",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHealth:
    """How many rows of a file are bad."""

    file: str
    rows: int
    bad: int


def health(parsed: DataFrame) -> list[FileHealth]:
    """Rows and bad rows of every file, in order of name."""
    counted = parsed.groupBy("file").agg(
        f.count_if(f.coalesce(f.col("problem") != HEADER, f.lit(True))).alias("rows"),
        f.count_if(is_bad()).alias("bad"),
    )
    return sorted(
        (FileHealth(file=found["file"], rows=found["rows"], bad=found["bad"]) for found in counted.collect()),
        key=lambda file: file.file,
    )


def refuse_mostly_bad(files: list[FileHealth], bad_rows: DataFrame) -> None:
    """An error that names the first file with more bad rows than good ones, and its first problem."""
    for file in files:
        if file.bad > MOSTLY * file.rows:
            first = bad_rows.where(f.col("file") == file.file).orderBy("line").first()
            where = f"; line {first['line']}: {first['reason']}" if first else ""
            raise InputError(f"{plain_path(file.file)}: {file.bad:,} of {file.rows:,} rows are bad{where}")
