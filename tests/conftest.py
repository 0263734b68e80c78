"""What tests share: the real traces, where they are at hand, and one Spark session."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import settings

from penstock.cli import main
from penstock.compiled import Floats
from penstock.data.traces import read_trace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long an example takes says how busy the machine is; speed is measured by `penstock bench`.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

Run = Callable[..., tuple[int, str, str]]

_PLACES = (os.environ.get("PENSTOCK_DATA", ""), "../shared/data")


def shared_data(name: str) -> Path:
    """A directory of real data; the test skips where there is none."""
    root = Path(__file__).parent.parent
    for place in _PLACES:
        if place and (found := (root / place / name)).exists():
            return found
    pytest.skip(f"needs real data: ../shared/data/{name} or PENSTOCK_DATA")


@pytest.fixture(scope="session")
def real_trips() -> Path:
    """The first 10,004 trips of 2013."""
    return shared_data("debs2015/trips-10004.csv")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run a command in an empty directory; gives exit status, output and errors."""
    monkeypatch.chdir(tmp_path)

    def command(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["penstock", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        return int(stopped.value.code or 0), captured.out, captured.err

    return command


def shared_rates() -> Path:
    return shared_data("rates")


@pytest.fixture(scope="session")
def recorded_trips() -> list[str]:
    """Ten thousand lines of DEBS 2015."""
    return (shared_data("debs2015") / "trips-10004.csv").read_text().splitlines()


@pytest.fixture(scope="session")
def rates_directory() -> Path:
    return shared_rates()


@pytest.fixture(scope="session")
def taxi(rates_directory: Path) -> Floats:
    return read_trace(rates_directory / "taxi.txt").rates


@pytest.fixture(scope="session")
def taxi_last_month(rates_directory: Path) -> Floats:
    return read_trace(rates_directory / "taxi-last-month.txt").rates


@pytest.fixture(scope="session")
def tweets(rates_directory: Path) -> Floats:
    return read_trace(rates_directory / "tweets.txt").rates


@pytest.fixture
def walk() -> Floats:
    """A short rate trace that visits every level and saturates small deployments."""
    steps = np.random.default_rng(11).normal(0, 40, 4000)
    rates: Floats = np.abs(np.cumsum(steps) % 1400 - 700)
    return np.round(rates)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything under tests/spark is marked so, and nothing else needs to say it."""
    for item in items:
        if Path(__file__).parent / "spark" in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """A quiet local session on two cores, in UTC."""
    from pyspark.sql import SparkSession  # a second to import, and only these tests need it

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("penstock-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", "-Xss4m")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
