"""Raw lines, and which of them are bad: every text reader starts and ends here.

A parsed table has the columns of its schema, and more that say where a row came from and
what is wrong with it: `file`; `block`, where in the file Spark began to read, or `line`
where the format knows it; `row`, the line as it stood; `problem`, null for a good row. One
row is one line: a quoted field may hold the delimiter, but not a line break.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlparse

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from penstock.domain.errors import InputError

HEADER = "header"  # of a line that is neither a row nor bad: a header, or an empty one
_SHORTEST_TIME = len("2013-01-01 00:00:00")  # Spark would take '12:00' for noon today
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def lines(spark: SparkSession, files: Sequence[str]) -> DataFrame:
    """-> lines(row string, file string, block bigint)."""
    return spark.read.text(list(files)).select(
        f.col("value").alias("row"),
        f.col("_metadata.file_path").alias("file"),
        f.col("_metadata.file_block_start").alias("block"),
    )


def first_problem(*checks: tuple[Column, Column]) -> Column:
    """The message of the first check that fails, null if none does; an unknown answer is a failure."""
    return f.coalesce(*(f.when(~f.coalesce(passed, f.lit(False)), message) for passed, message in checks))


def believable(
    name: str, at: Column, text: Column, since: datetime, until: datetime
) -> list[tuple[Column, Column]]:
    """Checks of a time: there is one, and it lies in the given range."""
    return [
        (
            at.isNotNull() & (f.length(text) >= _SHORTEST_TIME),
            f.format_string(f"{name} '%s' is not a time", f.coalesce(text, f.lit(""))),
        ),
        (
            (at >= f.lit(since)) & (at < f.lit(until)),
            f.format_string(f"{name} '%s' is not from {since:%Y-%m-%d} up to {until:%Y-%m-%d}", text),
        ),
    ]


def good(parsed: DataFrame) -> DataFrame:
    """parsed(..., file, block, row, problem) -> rows(...) without a problem."""
    return parsed.where(f.col("problem").isNull()).drop("file", "block", "line", "row", "problem")


def is_bad() -> Column:
    """Whether a parsed row belongs in quarantine."""
    return f.col("problem").isNotNull() & (f.col("problem") != HEADER)


def local_files(given: str, *, endings: Sequence[str]) -> list[str]:
    """The files a path stands for, in order of name; a URI of another file system is left to Spark."""
    if "://" in given:
        return [given]
    path = Path(given)
    try:
        if not path.exists():
            raise InputError(f"{path}: no such file or directory")
        found = [path] if path.is_file() else _inside(path)
        for file in found:
            with file.open("rb"):
                pass
    except OSError as problem:
        raise InputError(
            f"{problem.filename or path}: cannot read: {problem.strerror or problem}"
        ) from problem
    if not found:
        raise InputError(f"{path}: no data files in it ({', '.join(endings)})")
    if all(file.stat().st_size == 0 for file in found):
        raise InputError(f"{path}: empty")
    return [spark_path(file.resolve()) for file in found]


def spark_path(file: Path) -> str:
    """A file as Spark takes it: brackets and stars in a name are themselves, not patterns."""
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", str(file))


def plain_path(uri: str) -> str:
    """A file as its user knows it, from what Spark calls it: `file:///my%20trips.csv`."""
    return unquote(urlparse(uri).path) if uri.startswith("file:") else uri


def _inside(directory: Path) -> list[Path]:
    return sorted(
        file for file in directory.iterdir() if file.is_file() and not file.name.startswith((".", "_"))
    )
