"""CPU of a tree of processes, from files like those in /proc."""

import os
from pathlib import Path

import pytest

from penstock.bench.cpu_time import CpuMeter

TICKS = os.sysconf("SC_CLK_TCK")


def process(proc: Path, pid: int, *, parent: int, cpu_s: float, started: int = 1) -> None:
    """As the kernel writes it; half of the time was spent in the kernel itself."""
    ticks = round(cpu_s * TICKS / 2)
    before, after = ["S", str(parent), *["0"] * 9], ["777777", "888888", *["0"] * 4, str(started), "0"]
    (proc / str(pid)).mkdir(exist_ok=True)
    (proc / str(pid) / "stat").write_text(
        f"{pid} (a (strange) name) {' '.join([*before, str(ticks), str(ticks), *after])}"
    )


def gone(proc: Path, pid: int) -> None:
    (proc / str(pid) / "stat").unlink()


def test_all_descendants_count_from_the_first_look_on_and_nobody_else(tmp_path: Path) -> None:
    process(tmp_path, 1, parent=0, cpu_s=50)
    process(tmp_path, 10, parent=1, cpu_s=5)
    process(tmp_path, 11, parent=10, cpu_s=7)
    process(tmp_path, 12, parent=11, cpu_s=9)
    meter = CpuMeter(10, tmp_path)
    assert meter.look() == 0
    process(tmp_path, 1, parent=0, cpu_s=60)
    process(tmp_path, 10, parent=1, cpu_s=6)
    process(tmp_path, 12, parent=11, cpu_s=11)
    process(tmp_path, 13, parent=12, cpu_s=4)  # new: all of its time
    assert meter.look() == pytest.approx(1 + 2 + 4)


def test_what_a_process_used_stays_counted_when_it_has_ended(tmp_path: Path) -> None:
    process(tmp_path, 10, parent=1, cpu_s=5)
    process(tmp_path, 11, parent=10, cpu_s=7)
    meter = CpuMeter(10, tmp_path)
    meter.look()
    process(tmp_path, 11, parent=10, cpu_s=8)
    assert meter.look() == pytest.approx(1)
    gone(tmp_path, 11)
    assert meter.look() == pytest.approx(1)
    process(tmp_path, 11, parent=10, cpu_s=2, started=99)  # the number again, another process
    assert meter.look() == pytest.approx(3)


def test_a_process_that_computes_is_seen() -> None:
    meter = CpuMeter(os.getpid())
    meter.look()
    own_s = sum(os.times()[:2])
    while sum(os.times()[:2]) - own_s < 0.2:
        sum(range(1000))
    assert meter.look() >= 0.15
