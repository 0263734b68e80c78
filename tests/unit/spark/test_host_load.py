"""How full hosts are, and whether operators compute, from the counters that tasks report."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.runtimes.spark import host_load
from penstock.runtimes.spark.host_load import CpuUse, HostLoads, Reading, busy_share, here, ticks_in
from penstock.runtimes.spark.taps import REPORT_SCHEMA, EntryReport, TaskReport, exit_tap


def read(host: str, busy: int | None, total: int | None, python_s: float | None = None) -> Reading:
    return Reading(host=host, cpu_busy=busy, cpu_total=total, python_cpu_s=python_s)


def task(executor: str, at_end: Reading, busy_s: float = 1.0) -> TaskReport:
    return TaskReport(
        file="f", tuples=1, executor=executor, began_s=10.0, ended_s=10.0 + busy_s, at_end=at_end
    )


def test_busy_is_all_but_idle_and_waiting_for_disks_and_guests_are_not_counted_twice() -> None:
    """By proc(5): user nice system idle iowait irq softirq steal guest guest_nice."""
    assert ticks_in("cpu  100 5 50 800 40 3 2 7 60 0\n") == (167, 1007)
    assert ticks_in("cpu 1 2 3 4 5\n") == (6, 15)  # as old kernels had it
    with pytest.raises(ValueError, match="not the line of all CPUs"):
        ticks_in("intr 1 2 3 4 5 6")


def test_the_share_is_that_of_the_time_between_two_readings() -> None:
    assert busy_share(read("a", 100, 1000), read("a", 490, 1400)) == 0.975
    assert busy_share(read("a", 100, 1000), read("a", 110, 1010)) is None, "too short to tell"
    assert busy_share(read("a", 100, 1000), read("a", 5, 50)) is None, "it started anew"
    assert busy_share(read("a", None, None), read("a", 490, 1400)) is None
    assert busy_share(read("a", 100, 1000), read("a", None, None)) is None


def test_hosts_are_judged_from_interval_to_interval_by_the_newest_reading_of_each() -> None:
    loads, driver = HostLoads(), read("driver", 0, 0)
    first = [task("1", read("a", 100, 1000)), task("2", read("b", 100, 1000))]
    assert loads.over(first, driver, ["1", "2"]) is None, "nothing to compare with"
    then = [
        task("1", read("a", 195, 1100)),
        task("1", read("a", 300, 1200)),
        task("1", read("a", 240, 1150)),  # reported later, read earlier
        task("2", read("b", 150, 1200)),
    ]
    assert loads.over(then, driver, ["1", "2"]) == {"a": 1.0, "b": 0.25}
    # Executor 2 is gone, so nothing of ours is on its host.
    assert loads.over([task("1", read("a", 400, 1400))], driver, ["1"]) == {"a": 0.5}
    assert loads.over([], driver, ["1"]) is None, "no task ended: nothing is known"


def test_the_drivers_own_reading_counts_where_replicas_run_on_its_host_and_nowhere_else() -> None:
    loads = HostLoads()
    loads.over([task("1", read("a", 100, 1000))], read("here", 0, 0), ["1"])
    assert loads.over([], read("here", 100, 100), ["1"]) is None
    loads.over([task("1", read("here", 150, 200))], read("here", 160, 210), ["1"])
    assert loads.over([], read("here", 340, 410), ["1"]) == {"here": 0.9}


def test_readings_that_come_too_soon_count_together_with_the_next() -> None:
    loads = HostLoads()
    for busy, total, expected in ((0, 0, None), (20, 40, None), (40, 80, {"a": 0.5})):
        assert loads.over([task("1", read("a", busy, total))], read("b", None, None), ["1"]) == expected


def test_a_host_that_started_anew_is_known_from_its_second_reading_on() -> None:
    loads, driver = HostLoads(), read("b", None, None)
    for busy, total, expected in ((900, 9000, None), (10, 100, None), (110, 300, {"a": 0.5})):
        assert loads.over([task("1", read("a", busy, total))], driver, ["1"]) == expected


def test_an_operator_that_computes_is_told_from_one_that_waits() -> None:
    use = CpuUse()
    assert use.over([], [task("1", read("a", 0, 0, python_s=3.0))]) is None, "since when?"
    entry = EntryReport(executor="1", busy_s=0.5)
    both = [task("1", read("a", 0, 0, python_s=3.4)), task("1", read("a", 0, 0, python_s=4.8), busy_s=0.5)]
    assert use.over([entry], both) == pytest.approx(1.8 / 2.0)
    assert use.over([], [task("1", read("a", 0, 0, python_s=4.9))]) == pytest.approx(0.1)
    # Of another executor only the first reading is there, and its work does not count either.
    new = task("2", read("a", 0, 0, python_s=50.0), busy_s=9.0)
    assert use.over([], [task("1", read("a", 0, 0, python_s=5.1)), new]) == pytest.approx(0.2)
    assert use.over([], [task("1", read("a", 0, 0))]) is None
    assert use.over([], []) is None


def test_this_host_is_read_by_its_name_and_its_counters_grow() -> None:
    before = here()
    assert before.host == socket.gethostname()
    if not Path("/proc/stat").exists():
        pytest.skip("no /proc: nothing can be read")
    assert before.cpu_busy is not None
    assert before.cpu_total is not None
    until_s = time.monotonic() + 5
    while (after := here()).cpu_total == before.cpu_total and time.monotonic() < until_s:
        time.sleep(0.02)
    assert after.cpu_total is not None
    assert after.cpu_total > before.cpu_total


DAEMON = """
import os, time
from penstock.runtimes.spark.host_load import here

own_s = time.process_time()


def worker(reads):
    if os.fork() == 0:
        began_s = time.monotonic()
        while time.process_time() < 0.3:
            sum(range(1000))
        took_s = time.monotonic() - began_s
        time.sleep(0.3)  # to wait is not to compute
        if reads:
            print(here().python_cpu_s - own_s, took_s, flush=True)
        os._exit(0)
    os.wait()


worker(reads=False)  # has ended when the other one reads
worker(reads=True)
"""


def test_what_workers_that_run_and_that_have_ended_computed_counts_and_what_they_queued_for_it() -> None:
    """As of Spark's daemon: .3 s of the one that has ended, and as long as .3 s took the other one."""
    if not Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists():
        pytest.skip("the kernel does not list children")
    done = subprocess.run([sys.executable, "-c", DAEMON], capture_output=True, text=True, check=True)
    computed_s, took_s = map(float, done.stdout.split())
    queued = Path("/proc/self/schedstat").exists()
    assert computed_s == pytest.approx(0.3 + (took_s if queued else 0.3), abs=0.1)


def test_without_proc_nothing_is_known_and_the_columns_keep_their_types(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_load, "_PROC", tmp_path)
    assert here() == Reading(socket.gethostname(), None, None, None)
    (report,) = exit_tap(str(tmp_path))(iter(()))
    kinds = {"string": "string", "int64": "long", "double": "double"}
    assert ", ".join(f"{one.name} {kinds[str(one.type)]}" for one in report.schema) == REPORT_SCHEMA


def test_executors_and_hosts_that_went_long_ago_are_forgotten() -> None:
    loads, use = HostLoads(), CpuUse()
    for number in range(3_000):
        ended = [task(f"{number}", read(f"h{number}", 100, 1000, 1.0)), task("long", read("a", 0, number))]
        loads.over(ended, read("driver", 0, 0), ["long"])
        use.over([], ended)
    for known in (loads._host_of, loads._hosts, use._so_far_s):
        assert len(known) == 1_000
    assert loads.over([task("long", read("a", 100, 4000))], read("driver", 0, 0), ["long"]) is not None
