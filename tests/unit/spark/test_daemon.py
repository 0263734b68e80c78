"""Where a Python worker learns whose tasks it works for."""

import sys

import pytest

from penstock.runtimes.spark.daemon import _id_in, _prefer_installed_pyspark, executor_id


@pytest.mark.parametrize(
    ("command", "executor"),
    [
        (["java", "CoarseGrainedExecutorBackend", "--executor-id", "12", "--cores", "1"], "12"),
        (["java", "SparkSubmit"], "driver"),
        (["java", "--executor-id"], "driver"),
        ([], "driver"),
    ],
)
def test_an_executor_is_named_on_its_command_line(command: list[str], executor: str) -> None:
    assert _id_in(command) == executor


def test_the_executor_is_the_one_the_daemon_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_EXECUTOR", raising=False)
    assert executor_id() == "driver"
    monkeypatch.setenv("PENSTOCK_EXECUTOR", "7")
    assert executor_id() == "7"


def test_the_zip_of_pyspark_gives_way_only_to_an_installed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["/spark/pyspark.zip", *sys.path])
    _prefer_installed_pyspark()
    assert "/spark/pyspark.zip" not in sys.path
    monkeypatch.setattr(sys, "path", ["/spark/pyspark.zip", "/nowhere"])
    _prefer_installed_pyspark()
    assert sys.path == ["/spark/pyspark.zip", "/nowhere"]
