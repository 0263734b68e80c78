"""The warden: whoever is left when a driver has ended ends, and its folders go."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.runtimes.spark.cluster import _ALIVE, _WARDEN

# Goes on writing for a while, as a Java does that has not noticed yet.
_WRITER = """
import os, sys, time
until_s = time.monotonic() + 1.0
print("writing", flush=True)
while time.monotonic() < until_s:
    os.makedirs(sys.argv[1], exist_ok=True)
    with open(os.path.join(sys.argv[1], str(time.monotonic_ns())), "w"):
        time.sleep(.01)
"""


def writer(folder: Path, group: int | None) -> "subprocess.Popen[str]":
    words = [sys.executable, "-c", _WRITER, str(folder)]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, process_group=group
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


@pytest.mark.parametrize("alive", [True, False])
def test_folders_go_though_somebody_still_writes_there(tmp_path: Path, alive: bool) -> None:
    """One of its group, which it kills, and one that nobody can know of, which ends by itself."""
    mine, of_driver = tmp_path / "cluster", tmp_path / "driver"
    of_driver.mkdir()
    warden = subprocess.Popen(
        [sys.executable, "-c", _WARDEN, str(mine), str(of_driver)], stdin=subprocess.PIPE, process_group=0
    )
    writers = [writer(mine, warden.pid), writer(mine, None)]
    began_s = time.monotonic()
    warden.communicate(_ALIVE if alive else b"", timeout=30)
    for process in writers:
        process.communicate(timeout=30)
    assert writers[0].returncode == -9
    assert time.monotonic() - began_s < 20
    assert not mine.exists()
    assert of_driver.exists() is alive
