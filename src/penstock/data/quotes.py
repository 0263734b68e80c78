"""Market quotes: timestamp (milliseconds or finer), symbol, price, volume; a header line is skipped."""

from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock.data.raw import EARLIEST, HEADER, LATEST, believable, first_problem

FIELDS = ("timestamp", "symbol", "price", "volume")


def market_quotes(lines: DataFrame, *, since: datetime = EARLIEST, until: datetime = LATEST) -> DataFrame:
    """lines(row, file, block) -> quotes(at timestamp, symbol, price double, volume bigint, ..., problem)."""
    fields = f.col("fields")
    time, symbol, priced, traded = (f.get("fields", index) for index in range(len(FIELDS)))
    at, price, volume = time.try_cast("timestamp"), priced.try_cast("double"), traded.try_cast("bigint")
    problem = first_problem(
        (
            f.size(fields) == len(FIELDS),
            f.format_string(f"%d fields, {len(FIELDS)} expected ({', '.join(FIELDS)})", f.size(fields)),
        ),
        *believable("timestamp", at, time, since, until),
        (f.length(symbol) > 0, f.lit("no symbol")),
        (price > 0, f.format_string("price '%s' is not a positive number", priced)),
        (volume >= 0, f.format_string("volume '%s' is not a count", traded)),
    )
    is_header = f.lower(time).isin("timestamp", "time", "at")
    return lines.withColumn("fields", f.split("row", ",")).select(
        at.alias("at"),
        symbol.alias("symbol"),
        price.alias("price"),
        volume.alias("volume"),
        "file",
        "block",
        "row",
        f.when(is_header, f.lit(HEADER)).otherwise(problem).alias("problem"),
    )
