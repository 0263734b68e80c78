"""Tweets: JSON lines, or CSV with a header; all that is needed of one is when it was written."""

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from penstock.data.raw import EARLIEST, HEADER, LATEST, believable, first_problem
from penstock.domain.errors import InputError

TIME_NAMES = ("created_at", "timestamp", "timestamp_ms", "time", "date", "at")
_TWITTER_TIME = "MMM dd HH:mm:ss Z yyyy"  # Wed Oct 10 20:19:24 +0000 2018, the weekday left out


def json_tweets(lines: DataFrame, *, since: datetime = EARLIEST, until: datetime = LATEST) -> DataFrame:
    """lines(row, file, block) -> tweets(at timestamp, id string, file, block, row, problem)."""
    names = [*TIME_NAMES, "id", "id_str"]
    schema = ", ".join(f"`{name}` string" for name in [*names, "malformed"])
    options = {"columnNameOfCorruptRecord": "malformed"}
    tweets = lines.withColumn("tweet", f.from_json("row", schema, options))
    text = f.coalesce(*(f.col(f"tweet.{name}") for name in TIME_NAMES))
    is_json = (f.col("tweet.malformed").isNull() & f.col("row").startswith("{"), f.lit("not a JSON object"))
    has_time = (text.isNotNull(), f.lit(f"none of {', '.join(TIME_NAMES)} in it"))
    at = _time(text)
    return tweets.select(
        at.alias("at"),
        f.coalesce("tweet.id_str", "tweet.id").alias("id"),
        "file",
        "block",
        "row",
        first_problem(is_json, has_time, *believable("time", at, _padded(text), since, until)).alias(
            "problem"
        ),
    )


def csv_tweets(
    lines: DataFrame, header: str, *, since: datetime = EARLIEST, until: datetime = LATEST
) -> DataFrame:
    """lines(row, file, block) -> tweets(at timestamp, id string, file, block, row, problem)."""
    names = [name.strip().strip('"').lower() for name in header.split(",")]
    time_name = next((name for name in TIME_NAMES if name in names), None)
    if time_name is None:
        raise InputError(
            f"header '{header[:60]}': no column {', '.join(TIME_NAMES)}; the first line names the columns, "
            "separated by commas"
        )
    schema = ", ".join([*(f"c{index} string" for index in range(len(names))), "malformed string"])
    options = {"columnNameOfCorruptRecord": "malformed", "escape": '"'}  # a quote in quotes is doubled
    tweets = lines.withColumn("tweet", f.from_csv("row", schema, options))
    text = f.col(f"tweet.c{names.index(time_name)}")
    at = _time(text)
    id_column = f.col(f"tweet.c{names.index('id')}") if "id" in names else f.lit(None).cast("string")
    whole = (f.col("tweet.malformed").isNull(), f.lit(f"not {len(names)} fields"))
    problem = first_problem(whole, *believable(time_name, at, _padded(text), since, until))
    return tweets.select(
        at.alias("at"),
        id_column.alias("id"),
        "file",
        "block",
        "row",
        f.when(f.col("row") == header, f.lit(HEADER)).otherwise(problem).alias("problem"),
    )


def _time(text: Column) -> Column:
    """ISO 8601, milliseconds since 1970, or the way Twitter writes it."""
    return f.coalesce(
        f.when(text.rlike("^[0-9]{12,14}$"), f.timestamp_millis(text.try_cast("bigint"))),
        f.when(text.rlike("^[A-Z]"), f.try_to_timestamp(f.substring(text, 5, 100), f.lit(_TWITTER_TIME))),
        text.try_cast("timestamp"),
    )


def _padded(text: Column) -> Column:
    """Milliseconds are shorter than any written time, and as good."""
    return f.when(text.rlike("^[0-9]{12,14}$"), f.rpad(text, 19, " ")).otherwise(text)
