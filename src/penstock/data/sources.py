"""Opening raw data by kind, and writing what was made of it: tables are read and written here."""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from penstock.data import raw
from penstock.data.events import trip_events
from penstock.data.quotes import market_quotes
from penstock.data.trips import debs_times, debs_trips, tlc_trips
from penstock.data.tweets import csv_tweets, json_tweets
from penstock.domain.errors import InputError

_MADE_BY = ".made-by"  # hidden: readers of the directory pass it over


class Open(Protocol):
    """files -> parsed(at timestamp, ..., where each row came from and what is wrong with it)."""

    def __call__(
        self, spark: SparkSession, files: Sequence[str], since: datetime, until: datetime, /
    ) -> DataFrame: ...


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of raw data."""

    what: str
    endings: tuple[str, ...]
    first_look: Open  # at, file, problem: as fast as can be
    second_look: Open  # the same and where each row stands


def _debs_times(spark: SparkSession, files: Sequence[str], since: datetime, until: datetime, /) -> DataFrame:
    return trip_events(debs_times(spark, files, since=since, until=until))


def _debs_lines(spark: SparkSession, files: Sequence[str], since: datetime, until: datetime, /) -> DataFrame:
    needed = ("dropoff_datetime",)
    return trip_events(debs_trips(raw.lines(spark, files), columns=needed, since=since, until=until))


def _tlc(spark: SparkSession, files: Sequence[str], since: datetime, until: datetime, /) -> DataFrame:
    return trip_events(tlc_trips(spark, files, since=since, until=until))


def _tweets(spark: SparkSession, files: Sequence[str], since: datetime, until: datetime, /) -> DataFrame:
    tables = []
    as_json = [file for file in files if not _is_csv(file)]
    if as_json:
        tables.append(json_tweets(raw.lines(spark, as_json), since=since, until=until))
    by_header: dict[str, list[str]] = {}
    for file in files:
        if _is_csv(file):
            by_header.setdefault(_first_line(spark, file), []).append(file)
    for header, alike in by_header.items():
        tables.append(csv_tweets(raw.lines(spark, alike), header, since=since, until=until))
    whole = tables[0]
    for table in tables[1:]:
        whole = whole.unionByName(table)
    return whole


def _is_csv(file: str) -> bool:
    return file.removesuffix(".gz").removesuffix(".bz2").lower().endswith(".csv")


def _first_line(spark: SparkSession, file: str) -> str:
    first = spark.read.text(file).first()
    if first is None:
        raise InputError(f"{file}: empty")
    return str(first["value"])


def _quotes(spark: SparkSession, files: Sequence[str], since: datetime, until: datetime, /) -> DataFrame:
    return market_quotes(raw.lines(spark, files), since=since, until=until)


KINDS: Mapping[str, Kind] = {
    "debs2015": Kind(
        "taxi trips of the DEBS 2015 challenge, 17 comma-separated fields",
        (".csv", ".csv.gz"),
        _debs_times,
        _debs_lines,
    ),
    "tlc": Kind("yellow-taxi trip records of the TLC", (".parquet",), _tlc, _tlc),
    "tweets": Kind("tweets, JSON lines or CSV with a header", (".jsonl", ".json", ".csv"), _tweets, _tweets),
    "quotes": Kind("market quotes: timestamp, symbol, price, volume", (".csv",), _quotes, _quotes),
}


def kind_named(name: str) -> Kind:
    if name not in KINDS:
        raise InputError(f"kind '{name}': unknown; choose one of {', '.join(KINDS)}")
    return KINDS[name]


def write_table(table: DataFrame, out: Path) -> None:
    """A directory of Parquet files, whole or not at all; such a one that is there is replaced."""
    if out.exists():
        _refuse_others_work(out)
    _write_directory(out, table.write.parquet)


def remove_table(out: Path) -> None:
    """As if it had never been written; what is not a table stays, with an error."""
    if out.exists():
        _refuse_others_work(out)
        shutil.rmtree(out)


def _refuse_others_work(out: Path) -> None:
    """Only a table that Spark wrote is ever replaced or removed."""
    ours = out.is_dir() and all(
        path.name == "_SUCCESS" or path.name.endswith((".parquet", ".crc")) for path in out.iterdir()
    )
    if not ours:
        raise InputError(f"{out}: it exists and is not a table of bad rows; move it, or choose another --out")


def write_lines(lines: DataFrame, out: Path, *, made_by: str = "") -> None:
    """lines(value string) -> a directory of text files, whole or not at all, noting how it was made."""

    def write(place: str) -> None:
        lines.write.text(place)
        (Path(place) / _MADE_BY).write_text(made_by, encoding="utf-8")

    _write_directory(out, write)


def is_made_by(out: Path, made_by: str) -> bool:
    """Whether the directory was written with this note."""
    try:
        return (out / _MADE_BY).read_text(encoding="utf-8") == made_by
    except (OSError, UnicodeDecodeError):
        return False


def _write_directory(out: Path, write: Callable[[str], None]) -> None:
    out = out.absolute()  # Java keeps the directory it was started in
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    except OSError as problem:
        raise InputError(f"{out}: cannot write: {problem.strerror or problem}") from problem
    try:
        write(str(beside / "new"))
        for checksum in (beside / "new").glob(".*.crc"):
            checksum.unlink()
        if out.exists():
            out.rename(beside / "old")
        (beside / "new").rename(out)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
