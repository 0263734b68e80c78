"""The embedded cluster: what it starts it ends, and what goes wrong is one line."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import java
from penstock.domain.errors import InputError
from penstock.runtimes.spark.cluster import LOOPBACK, ClusterError, LocalCluster

pytestmark = pytest.mark.spark

_DRIVER = """
import sys, time
from pathlib import Path
from penstock.runtimes.spark.cluster import LocalCluster
cluster = LocalCluster(Path(sys.argv[1])).start()
print("up", flush=True)
time.sleep(600)
"""


def processes(work: Path) -> list[int]:
    """Java processes that mention this directory, or were started by those."""
    found = subprocess.run(["pgrep", "-f", str(work)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def gone(work: Path, within_s: float = 20) -> bool:
    deadline = time.monotonic() + within_s
    while processes(work):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def alive(cluster: LocalCluster) -> int:
    workers = (cluster.state() or {}).get("workers", [])
    return sum(1 for worker in workers if worker["state"] == "ALIVE")


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_workers_come_and_go_one_that_was_killed_comes_back_and_nothing_is_left(tmp_path: Path) -> None:
    with LocalCluster(tmp_path) as cluster:
        cluster.start_worker("op_a-1", cores=1, memory_mb=512, tag="op_a")
        until(lambda: alive(cluster) == 2)
        assert set(cluster.workers()) == {"worker", "op_a-1"}
        cluster.stop_worker("op_a-1")
        assert set(cluster.workers()) == {"worker"}
        assert cluster.revive() is None
        cluster._processes["worker"].handle.kill()
        until(lambda: not cluster.workers())
        assert cluster.revive() is None, "not before a pause"
        until(lambda: "was started again" in (cluster.revive() or ""))
        until(lambda: alive(cluster) == 1)
    assert gone(tmp_path)


def test_a_killed_driver_leaves_no_orphan(tmp_path: Path) -> None:
    words = [sys.executable, "-c", _DRIVER, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "up\n"
        assert processes(tmp_path)
        os.kill(driver.pid, signal.SIGKILL)
    assert gone(tmp_path)


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=rf"port {port} on {LOOPBACK}: .*in use"):
            LocalCluster(tmp_path, port=port).start()


def test_a_master_that_does_not_come_up_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"the master did not start within 0\.01 s"):
        LocalCluster(tmp_path, start_timeout_s=0.01).start()
    assert gone(tmp_path)


def test_without_java_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java.java.cache_clear()
    java.command.cache_clear()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    try:
        with pytest.raises(InputError, match=r"no Java 17 or newer in JAVA_HOME=.*openjdk-17-jre-headless"):
            LocalCluster(tmp_path).start()
    finally:
        java.java.cache_clear()
        java.command.cache_clear()
