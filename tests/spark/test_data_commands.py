"""`penstock trace build` and `synth --events` as a user meets them: one clear line, nothing half written."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

Run = Callable[..., tuple[int, str, str]]
GOOD = "A,B,2013-01-01 00:00:00,2013-01-01 00:{minute:02d}:00,120,0.44,-73.9,40.7,-73.9,40.7,CSH,3,0,0,0,0,4"


def write_trips(path: Path, *, rows: int = 600) -> None:
    path.write_text("".join(f"{GOOD.format(minute=row % 60)}\n" for row in range(rows)))


@pytest.mark.usefixtures("spark")
def test_a_trace_is_built_and_building_it_again_changes_nothing(run: Run, tmp_path: Path) -> None:
    write_trips(tmp_path / "trips.csv")
    words = ("trace", "build", "trips.csv", "--kind", "debs2015", "--accelerate", 60, "--slot-s", 1)
    for _ in range(2):
        status, out, err = run(*words, "--out", "taxi.txt", "--json")
        assert (status, err) == (0, "")
        answer = json.loads(out)
        assert (answer["rows"], answer["bad"], answer["slots"], answer["gaps"]) == (600, 0, 60, [])
        assert (tmp_path / "taxi.txt").read_text() == "10\n" * 60
    assert sorted(path.name for path in tmp_path.iterdir()) == ["taxi.txt", "trips.csv"]


@pytest.mark.usefixtures("spark")
def test_amplified_and_accelerated_events_arrive_so_many_times_as_fast(run: Run, tmp_path: Path) -> None:
    write_trips(tmp_path / "trips.csv")
    words = ("trace", "build", "trips.csv", "--kind", "debs2015", "--accelerate", 10, "--amplify", 5)
    assert run(*words, "--slot-s", 6, "--out", "taxi.txt")[0] == 0
    # Ten a minute, fifty with their surrogates, in six seconds.
    assert (tmp_path / "taxi.txt").read_text().split() == [repr(50 / 6)] * 60


def truncated_parquet(at: Path) -> None:
    at.write_bytes(b"PAR1 and then the copy broke off")


def wrong_delimiter(at: Path) -> None:
    at.write_text(f"{GOOD.format(minute=1)}\n".replace(",", ";") * 50)


def too_many_columns(at: Path) -> None:
    at.write_text(f"{GOOD.format(minute=1)},x\n" * 50)


def out_of_range(at: Path) -> None:
    at.write_text(f"{GOOD.format(minute=1)}\n".replace("2013-", "1913-") * 50)


def empty_directory(at: Path) -> None:
    at.mkdir()


def empty_file(at: Path) -> None:
    at.touch()


def unreadable(at: Path) -> None:
    at.symlink_to(at)  # works for root too, who may read everything


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("make", "kind", "complaint"),
    [
        (truncated_parquet, "tlc", "data: "),
        (wrong_delimiter, "debs2015", "50 of 50 rows are bad; line 1: 1 fields, 17 expected"),
        (too_many_columns, "debs2015", "50 of 50 rows are bad; line 1: 18 fields, 17 expected"),
        (out_of_range, "debs2015", "is not from 2000-01-01 up to 2100-01-01"),
        (empty_directory, "debs2015", "data: no data files in it (.csv, .csv.gz)"),
        (empty_file, "quotes", "data: empty"),
        (unreadable, "debs2015", "data: "),
        (lambda at: None, "debs2015", "data: no such file or directory"),
        (wrong_delimiter, "taxis", "kind 'taxis': unknown; choose one of debs2015, tlc, tweets, quotes"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    run: Run, tmp_path: Path, make: Callable[[Path], None], kind: str, complaint: str
) -> None:
    make(tmp_path / "data")
    before = sorted(path.name for path in tmp_path.iterdir())
    status, out, err = run("trace", "build", "data", "--kind", kind, "--out", "trace.txt")
    assert status == 2
    assert out == ""
    assert err.startswith("penstock: ")
    assert err.count("\n") == 1
    assert complaint in err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.usefixtures("spark")
def test_an_output_that_differs_is_kept_unless_told_otherwise(run: Run, tmp_path: Path) -> None:
    write_trips(tmp_path / "trips.csv")
    (tmp_path / "taxi.txt").write_text("precious\n")
    words = ("trace", "build", "trips.csv", "--kind", "debs2015", "--out", "taxi.txt")
    status, _, err = run(*words)
    assert (status, err) == (
        2,
        "penstock: taxi.txt: exists and differs; choose another name or --overwrite\n",
    )
    assert (tmp_path / "taxi.txt").read_text() == "precious\n"
    assert run(*words, "--overwrite")[0] == 0
    assert len((tmp_path / "taxi.txt").read_text().split()) == 60


@pytest.mark.parametrize(
    ("events", "kind", "rows"),
    [("trips", "debs2015", 3000), ("tweets", "tweets", 3000), ("quotes", "quotes", 3000)],
)
def test_made_up_events_are_read_back_without_a_bad_row(
    spark: SparkSession, run: Run, tmp_path: Path, events: str, kind: str, rows: int
) -> None:
    words = ("trace", "synth", "--events", events, "--rows", rows, "--slots", 50, "--out")
    assert run(*words, "raw")[0] == 0
    status, out, _ = run("trace", "build", "raw", "--kind", kind, "--slot-s", 1, "--out", "t.txt", "--json")
    answer = json.loads(out)
    assert (status, answer["rows"], answer["bad"]) == (0, rows, 0)
    made = sorted(
        line for file in (tmp_path / "raw").glob("part-*") for line in file.read_text().splitlines()
    )
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    assert run(*words, "again")[0] == 0
    spark.conf.set("spark.sql.shuffle.partitions", str(before))
    again = sorted(
        line for file in (tmp_path / "again").glob("part-*") for line in file.read_text().splitlines()
    )
    assert again == made
    written = {file: file.stat().st_mtime_ns for file in (tmp_path / "raw").iterdir()}
    assert run(*words, "raw")[0] == 0  # the same again changes nothing
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "raw").iterdir()} == written
    other = run(*words, "raw", "--seed", 2)
    assert other[2] == "penstock: raw: exists; choose another name or --overwrite\n"


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("folder", ["my trips", "100%", "trips [1] {a,b}"])
def test_bad_rows_are_found_whatever_the_directory_is_called(run: Run, tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    write_trips(tmp_path / folder / "trips.csv", rows=59)
    with (tmp_path / folder / "trips.csv").open("a") as file:
        file.write("no trip at all\n")
    status, out, err = run(
        "trace", "build", f"{folder}/trips.csv", "--kind", "debs2015", "--out", "t.txt", "--json"
    )
    assert (status, err) == (0, "")
    assert (json.loads(out)["rows"], json.loads(out)["bad"]) == (60, 1)


@pytest.mark.usefixtures("spark")
def test_what_stands_where_bad_rows_would_go_is_never_removed(run: Run, tmp_path: Path) -> None:
    write_trips(tmp_path / "trips.csv")
    precious = tmp_path / "t.txt.quarantine" / "precious"
    precious.parent.mkdir()
    precious.write_text("keep me")
    words = ("trace", "build", "trips.csv", "--kind", "debs2015", "--out", "t.txt")
    status, _, err = run(*words)
    assert status == 2
    assert "t.txt.quarantine: it exists and is not a table of bad rows" in err
    assert precious.read_text() == "keep me"
    assert not (tmp_path / "t.txt").exists()
    with (tmp_path / "trips.csv").open("a") as file:
        file.write("no trip at all\n")
    assert run(*words)[0] == 2
    assert precious.read_text() == "keep me"


@pytest.mark.usefixtures("spark")
def test_surrogates_do_not_depend_on_the_name_of_the_file(run: Run, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_trips(tmp_path / f"{name}.csv")
        words = ("--kind", "debs2015", "--amplify", 1.5, "--out", f"{name}.txt")
        assert run("trace", "build", f"{name}.csv", *words)[0] == 0
    assert (tmp_path / "one.txt").read_text() == (tmp_path / "two.txt").read_text()


@pytest.mark.usefixtures("spark")
def test_a_quote_in_a_quoted_field_is_doubled(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tweets.csv").write_text(
        'id,created_at,text\n1,2018-10-10T20:20:24Z,plain\n2,2018-10-10T20:20:25Z,"say ""a"", b"\n'
    )
    status, out, err = run("trace", "build", "tweets.csv", "--kind", "tweets", "--out", "t.txt", "--json")
    assert (status, err) == (0, "")
    assert (json.loads(out)["rows"], json.loads(out)["bad"]) == (2, 0)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("option", ["--amplify", "--accelerate"])
def test_an_infinite_factor_is_refused(run: Run, tmp_path: Path, option: str) -> None:
    write_trips(tmp_path / "trips.csv")
    status, _, err = run("trace", "build", "trips.csv", "--kind", "debs2015", option, "inf", "--out", "t.txt")
    assert (status, err.count("\n")) == (2, 1)
    assert "by inf" in err
