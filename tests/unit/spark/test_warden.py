"""The warden: whoever is left when a driver has ended ends, and its folders go."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
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


def state_of(pid: int) -> str:
    """As the kernel has it; nothing of a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def ignores_hangups(pid: int) -> bool:
    _, _, mask = Path(f"/proc/{pid}/status").read_text().partition("SigIgn:")
    return bool(int(mask.split()[0], 16) & 1 << (signal.SIGHUP - 1))


def wait_until(true: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 20
    while not true():
        assert time.monotonic() < until_s
        time.sleep(0.05)


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


_DRIVER = """
import subprocess, sys, time
warden = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdin=subprocess.PIPE, process_group=0)
sleeper = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]
other = subprocess.Popen(sleeper, process_group=warden.pid, stdout=subprocess.PIPE)
other.stdout.readline()
print(warden.pid, other.pid, flush=True)
time.sleep(60)
"""


def test_folders_go_when_the_driver_dies_while_one_of_the_group_stands_still(tmp_path: Path) -> None:
    """The kernel tells a group that nobody is left to care for, and of which one has stopped, to hang up."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    driver = subprocess.Popen(
        [sys.executable, "-c", _DRIVER, _WARDEN, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert driver.stdout is not None
    warden, other = map(int, driver.stdout.readline().split())
    wait_until(lambda: ignores_hangups(warden))  # it may still be starting
    os.kill(other, signal.SIGSTOP)
    wait_until(lambda: state_of(other) == "T")
    driver.kill()
    driver.communicate(timeout=30)
    wait_until(lambda: not folder.exists())
    wait_until(lambda: state_of(other) in ("Z", ""))  # it may be that nobody waits for it
