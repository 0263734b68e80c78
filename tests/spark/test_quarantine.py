"""Bad rows: found, numbered, counted, and never half an output."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.data import raw
from penstock.data.build import Recipe, build_trace
from penstock.data.quarantine import health, numbered
from penstock.data.sources import KINDS
from penstock.data.trips import debs_trips
from penstock.domain.errors import InputError

GOOD = "A,B,2013-01-01 00:00:00,2013-01-01 00:{minute:02d}:00,120,0.44,-73.9,40.7,-73.9,40.7,CSH,3,0,0,0,0,4"
BAD = {
    "too few fields": ("A,B,2013-01-01 00:00:00", "3 fields, 17 expected"),
    "another delimiter": (GOOD.format(minute=1).replace(",", ";"), "1 fields, 17 expected"),
    "no time": (
        GOOD.format(minute=1).replace("2013-01-01 00:01:00", "noon"),
        "dropoff_datetime 'noon' is not a time",
    ),
    "an hour of an unknown day": (
        GOOD.format(minute=1).replace("2013-01-01 00:01:00", "12:00:00"),
        "dropoff_datetime '12:00:00' is not a time",
    ),
    "another century": (
        GOOD.format(minute=1).replace("2013-01-01 00:01:00", "1913-01-01 00:01:00"),
        "dropoff_datetime '1913-01-01 00:01:00' is not from 2000-01-01 up to 2100-01-01",
    ),
    "no number": (GOOD.format(minute=1).replace("0.44", "far"), "trip_distance 'far' is not a number"),
}


@pytest.fixture
def small_blocks(spark: SparkSession) -> Iterator[None]:
    """Files are read in many pieces, as large ones are."""
    setting = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "20000")
    yield
    spark.conf.set(setting, str(before))


@pytest.mark.usefixtures("small_blocks")
def test_a_bad_row_is_found_by_file_and_line_however_the_file_is_cut(
    spark: SparkSession, tmp_path: Path
) -> None:
    expected = set()
    for name in ("one.csv", "two.csv"):
        lines = [GOOD.format(minute=index % 60) for index in range(2000)]
        for index, (bad, reason) in enumerate(BAD.values()):
            line = 100 + 271 * index + len(name)
            lines[line - 1] = bad
            expected.add((name, line, reason, bad))
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    parsed = debs_trips(raw.lines(spark, [str(tmp_path)]))
    assert parsed.rdd.getNumPartitions() > 10
    found = {
        (Path(row["file"]).name, row["line"], row["reason"], row["row"]) for row in numbered(parsed).collect()
    }
    assert found == expected
    assert [(file.rows, file.bad) for file in health(parsed)] == [(2000, len(BAD))] * 2


def test_good_rows_are_counted_although_others_are_bad(spark: SparkSession, tmp_path: Path) -> None:
    lines = [GOOD.format(minute=index // 100) for index in range(1000)]
    lines[5] = "A,B"
    lines[7] = GOOD.format(minute=0).replace("2013-01-01 00:00:00,120", "1913-01-01 00:00:00,120")
    lines[8] = GOOD.format(minute=0) + ",x"
    lines[9] = '"' + GOOD.format(minute=0)[1:]  # a quote means nothing here
    lines[10] = ""  # nor does an empty line
    (tmp_path / "trips.csv").write_text("\n".join(lines) + "\nA,B,2013-01-01 00:0")  # and the end is missing
    built = build_trace(spark, KINDS["debs2015"], [str(tmp_path / "trips.csv")], Recipe(), name="t")
    assert (built.rows, built.bad) == (1000, 4)
    assert [round(60 * rate) for rate in built.trace.rates] == [96] + [100] * 9
    assert built.quarantine is not None
    assert {row["line"] for row in built.quarantine.collect()} == {6, 8, 9, 1001}


def test_a_mostly_bad_file_is_an_error_that_names_it_and_its_first_problem(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("\n".join(GOOD.format(minute=1) for _ in range(1000)))
    (tmp_path / "b.csv").write_text(f"{GOOD.format(minute=1)}\n1;2\n3;4\n")
    with pytest.raises(InputError, match=r"b\.csv: 2 of 3 rows are bad; line 2: 1 fields, 17 expected$"):
        build_trace(spark, KINDS["debs2015"], [str(tmp_path)], Recipe(), name="t")
