"""Taxi trips: the DEBS 2015 Grand Challenge's CSV and the city's own Parquet, as one table.

trips(pickup_datetime timestamp, dropoff_datetime timestamp, trip_time_in_secs bigint,
trip_distance double, pickup_longitude double, pickup_latitude double, dropoff_longitude double,
dropoff_latitude double, ...). What a source does not know is null.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from penstock.data.raw import EARLIEST, HEADER, LATEST, believable, first_problem
from penstock.domain.errors import InputError

# The 17 fields of https://debs.org/grand-challenges/2015, in order; the file has no header.
DEBS_2015: Mapping[str, str] = {
    "medallion": "string",
    "hack_license": "string",
    "pickup_datetime": "timestamp",
    "dropoff_datetime": "timestamp",
    "trip_time_in_secs": "bigint",
    "trip_distance": "double",
    "pickup_longitude": "double",
    "pickup_latitude": "double",
    "dropoff_longitude": "double",
    "dropoff_latitude": "double",
    "payment_type": "string",
    "fare_amount": "double",
    "surcharge": "double",
    "mta_tax": "double",
    "tip_amount": "double",
    "tolls_amount": "double",
    "total_amount": "double",
}


def debs_trips(
    lines: DataFrame,
    *,
    columns: Sequence[str] = tuple(DEBS_2015),
    since: datetime = EARLIEST,
    until: datetime = LATEST,
) -> DataFrame:
    """lines(row, file, block) -> trips(the columns asked for, file, block, row, problem).

    A row is judged by its number of fields and by the columns asked for: parsing the rest
    would cost more than the whole job (a trace needs one column of seventeen).
    """
    fields = f.col("fields")
    position = {name: index for index, name in enumerate(DEBS_2015)}
    text = {name: f.get(fields, position[name]) for name in columns}
    values = {
        name: text[name] if kind == "string" else text[name].try_cast(kind)
        for name, kind in DEBS_2015.items()
        if name in text
    }
    enough = (
        f.size(fields) == len(DEBS_2015),
        f.format_string(f"%d fields, {len(DEBS_2015)} expected", f.size(fields)),
    )
    checks = [enough]
    for name in columns:
        match DEBS_2015[name]:
            case "timestamp":
                checks += believable(name, values[name], text[name], since, until)
            case "bigint" | "double":
                checks.append(
                    (values[name].isNotNull(), f.format_string(f"{name} '%s' is not a number", text[name]))
                )
    split = lines.withColumn("fields", f.split("row", ","))
    return split.select(
        *(values[name].alias(name) for name in columns),
        "file",
        "block",
        "row",
        f.when(f.trim("row") == "", f.lit(HEADER)).otherwise(first_problem(*checks)).alias("problem"),
    )


def debs_times(
    spark: SparkSession, files: Sequence[str], *, since: datetime = EARLIEST, until: datetime = LATEST
) -> DataFrame:
    """-> parsed(dropoff_datetime timestamp, file string, problem string), and no idea where in the file.

    Spark's own CSV parser, which skips the fields nobody asks for; the same rows are bad as
    in `debs_trips` with that one column. It does not tell how many fields there are, so the
    last must be there and one more must not.
    """
    names = list(DEBS_2015)
    schema = ", ".join(f"{name} string" for name in [*names, "one_more"])
    options = {"quote": "", "nullValue": "\u0001"}  # an empty field is there, a missing one is null
    rows = spark.read.options(**options).schema(schema).csv(list(files))
    text = f.col("dropoff_datetime")
    at = text.try_cast("timestamp")
    whole = (f.col(names[-1]).isNotNull() & f.col("one_more").isNull(), f.lit(f"not {len(names)} fields"))
    problem = first_problem(whole, *believable("dropoff_datetime", at, text, since, until))
    return rows.select(
        at.alias("dropoff_datetime"), f.col("_metadata.file_path").alias("file"), problem.alias("problem")
    )


# What the city's files have called the same thing, newest name first (2009, 2010-2014, 2015 on).
TLC_NAMES: Mapping[str, tuple[str, ...]] = {
    "pickup_datetime": ("tpep_pickup_datetime", "pickup_datetime", "trip_pickup_datetime"),
    "dropoff_datetime": ("tpep_dropoff_datetime", "dropoff_datetime", "trip_dropoff_datetime"),
    "trip_distance": ("trip_distance",),
    "pickup_longitude": ("pickup_longitude", "start_lon"),
    "pickup_latitude": ("pickup_latitude", "start_lat"),
    "dropoff_longitude": ("dropoff_longitude", "end_lon"),
    "dropoff_latitude": ("dropoff_latitude", "end_lat"),
    "pickup_zone": ("pulocationid",),
    "dropoff_zone": ("dolocationid",),
    "total_amount": ("total_amount", "total_amt"),
}
_TLC_TYPES = {
    "pickup_datetime": "timestamp",
    "dropoff_datetime": "timestamp",
    "pickup_zone": "bigint",
    "dropoff_zone": "bigint",
}


def tlc_trips(
    spark: SparkSession, files: Sequence[str], *, since: datetime = EARLIEST, until: datetime = LATEST
) -> DataFrame:
    """Parquet files of any year -> trips(the columns of TLC_NAMES, file, line, row, problem)."""
    # Files of one year have one layout; a layout is read at once.
    layouts: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for file in files:
        layout = tuple(spark.read.parquet(file).dtypes)
        layouts.setdefault(layout, []).append(file)
    tables = [_tlc_layout(spark.read.parquet(*alike), alike[0], since, until) for alike in layouts.values()]
    whole = tables[0]
    for table in tables[1:]:
        whole = whole.unionByName(table)
    return whole


def _tlc_layout(raw: DataFrame, file: str, since: datetime, until: datetime) -> DataFrame:
    there = {name.lower(): name for name in raw.columns}
    source = {
        ours: next((there[theirs] for theirs in names if theirs in there), None)
        for ours, names in TLC_NAMES.items()
    }
    for needed in ("pickup_datetime", "dropoff_datetime"):
        if source[needed] is None:
            raise InputError(
                f"{file}: no column {' or '.join(TLC_NAMES[needed])}; is it a yellow-taxi file of the TLC?"
            )
    values = {
        ours: (f.lit(None) if theirs is None else f.col(f"`{theirs}`")).try_cast(
            _TLC_TYPES.get(ours, "double")
        )
        for ours, theirs in source.items()
    }
    times = [
        (name, f.col(f"`{source[name]}`").cast("string")) for name in ("pickup_datetime", "dropoff_datetime")
    ]
    checks: list[tuple[Column, Column]] = list(
        chain.from_iterable(believable(name, values[name], text, since, until) for name, text in times)
    )
    return raw.select(
        *(value.alias(ours) for ours, value in values.items()),
        f.col("_metadata.file_path").alias("file"),
        (f.col("_metadata.row_index") + 1).alias("line"),
        f.concat_ws(",", *(text for _, text in times)).alias("row"),
        first_problem(*checks).alias("problem"),
    )
