"""The other sources: the city's Parquet over the years, tweets, quotes."""

from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.data import raw
from penstock.data.quarantine import health, numbered
from penstock.data.quotes import market_quotes
from penstock.data.raw import EARLIEST, LATEST
from penstock.data.sources import KINDS
from penstock.data.trips import tlc_trips
from penstock.domain.errors import InputError


def opened(spark: SparkSession, kind: str, *files: Path) -> DataFrame:
    return KINDS[kind].second_look(spark, [str(file) for file in files], EARLIEST, LATEST)


def times(parsed: DataFrame) -> list[str]:
    shown = raw.good(parsed).selectExpr("date_format(at, 'yyyy-MM-dd HH:mm:ss.SSS') AS at")
    return sorted(row["at"] for row in shown.collect())


def bad(parsed: DataFrame) -> dict[int, str]:
    return {row["line"]: row["reason"] for row in numbered(parsed).collect()}


def test_trip_records_of_three_eras_make_one_table(spark: SparkSession, tmp_path: Path) -> None:
    at = [datetime(2010, 1, 1, 12, minute) for minute in range(4)]
    layouts: dict[str, tuple[list[tuple[object, ...]], str]] = {
        "2009": (
            [("2009-01-04 02:52:00", "2009-01-04 03:02:00", -73.99, 40.72, -73.98, 40.69, 9.4)],
            "Trip_Pickup_DateTime string, Trip_Dropoff_DateTime string, Start_Lon double, Start_Lat double, "
            "End_Lon double, End_Lat double, Total_Amt double",
        ),
        "2010": (
            [
                (at[0], at[1], -73.9, 40.7, 5.0),
                (at[1], None, -73.9, 40.7, 5.0),
                (at[2], at[3], -73.9, 40.7, 6.0),
            ],
            "pickup_datetime timestamp, dropoff_datetime timestamp, pickup_longitude double, "
            "pickup_latitude double, total_amount double",
        ),
        "2017": (
            [(at[2], at[3], 142, 236, 7.0)],
            "tpep_pickup_datetime timestamp_ntz, tpep_dropoff_datetime timestamp_ntz, PULocationID bigint, "
            "DOLocationID bigint, total_amount double",
        ),
    }
    files = []
    for year, (rows, schema) in layouts.items():
        spark.createDataFrame(rows, schema).coalesce(1).write.parquet(str(tmp_path / year))
        files += [str(file) for file in (tmp_path / year).glob("*.parquet")]
    parsed = tlc_trips(spark, files)
    good = raw.good(parsed).orderBy("total_amount").collect()
    assert [row["total_amount"] for row in good] == [5.0, 6.0, 7.0, 9.4]
    assert [row["pickup_zone"] for row in good] == [None, None, 142, None]
    assert [row["pickup_longitude"] for row in good] == [-73.9, -73.9, None, -73.99]
    assert bad(parsed) == {2: "dropoff_datetime '' is not a time"}


def test_a_parquet_file_without_trips_is_named(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "other"))
    with pytest.raises(InputError, match=r"no column tpep_pickup_datetime or .*is it a yellow-taxi file"):
        tlc_trips(spark, [str(tmp_path / "other")])


def test_tweets_are_read_from_json_lines_however_they_write_the_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "tweets.jsonl").write_text(
        '{"created_at": "Wed Oct 10 20:19:24 +0000 2018", "text": "a, b", "user": {"id": 3}}\n'
        '{"created_at": "2020-03-01T00:00:01.500Z", "id": 7}\n'
        '{"timestamp_ms": "1583020802000"}\n'
        '{"text": "when?"}\n'
        "not json\n"
        '{"created_at": "2020-03-01T00:0\n'
    )
    parsed = opened(spark, "tweets", tmp_path / "tweets.jsonl")
    expected = ["2018-10-10 20:19:24.000", "2020-03-01 00:00:01.500", "2020-03-01 00:00:02.000"]
    assert times(parsed) == expected
    assert {line: reason.split(" ")[0] for line, reason in bad(parsed).items()} == {
        4: "none",
        5: "not",
        6: "not",
    }


def test_tweets_are_read_from_csv_with_a_header_that_is_no_row(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "tweets.csv").write_text(
        'id,created_at,text\n1,2020-03-01 00:00:00,"hello, you"\n2,2020-03-01 00:01:00,x\n'
        "3,2020-03-01 00:02:00\n"
    )
    parsed = opened(spark, "tweets", tmp_path / "tweets.csv")
    assert times(parsed) == ["2020-03-01 00:00:00.000", "2020-03-01 00:01:00.000"]
    assert bad(parsed) == {4: "not 3 fields"}
    assert [(file.rows, file.bad) for file in health(parsed)] == [(3, 1)]


def test_a_tweet_file_whose_header_names_no_time_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "tweets.csv").write_text("id;created_at;text\n1;2020-03-01 00:00:00;x\n")
    with pytest.raises(InputError, match="header 'id;created_at;text': no column created_at"):
        opened(spark, "tweets", tmp_path / "tweets.csv")


def test_quotes_keep_their_milliseconds(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "quotes.csv").write_text(
        "timestamp,symbol,price,volume\n"
        "2014-10-30 09:30:00.123,AAPL,106.96,200\n"
        "2014-10-30 09:30:00.123456,MSFT,46.32,100\n"
        "2014-10-30 09:30:01.000,,46.32,100\n"
        "2014-10-30 09:30:01.000,MSFT,-1,100\n"
        "2014-10-30 09:30:01.000,MSFT,46.32,some\n"
        "2014-10-30 09:30:01.000,MSFT,46.32\n"
    )
    parsed = market_quotes(raw.lines(spark, [str(tmp_path)]))
    good = (
        raw.good(parsed).selectExpr("unix_micros(at) % 1000000 AS us", "symbol", "price", "volume").collect()
    )
    assert sorted(tuple(row) for row in good) == [(123000, "AAPL", 106.96, 200), (123456, "MSFT", 46.32, 100)]
    assert bad(parsed) == {
        4: "no symbol",
        5: "price '-1' is not a positive number",
        6: "volume 'some' is not a count",
        7: "3 fields, 4 expected (timestamp, symbol, price, volume)",
    }
