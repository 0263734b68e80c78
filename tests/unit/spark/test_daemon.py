"""Where a Python worker learns whose tasks it works for."""

import sys
from pathlib import Path

import pytest

from penstock.runtimes.spark.daemon import (
    MODULES_VARIABLE,
    _id_in,
    _load,
    _prefer_installed_pyspark,
    executor_id,
)


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


def test_modules_of_operators_are_loaded_and_get_ready_before_workers_are_forked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "with_kernels.py").write_text("ready = []\ndef get_ready():\n    ready.append(1)\n")
    (tmp_path / "without.py").write_text("")
    (tmp_path / "broken.py").write_text("def get_ready():\n    raise ValueError\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv(MODULES_VARIABLE, "broken nowhere without with_kernels")
    monkeypatch.setattr("gc.freeze", lambda: None)
    _load()
    assert sys.modules["with_kernels"].ready == [1]
    assert "without" in sys.modules
