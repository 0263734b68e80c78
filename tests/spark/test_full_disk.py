"""A disk that fills up: a clear end, nothing lost, and a run that goes on once there is room."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.apps.feeding.schedule import ByRates, Shape
from penstock.apps.top_routes.trip_lines import GeneratedTrips
from query1_checker import problems

pytestmark = pytest.mark.spark
_SMALL, _LARGE = "3m", "1g"
_SLOW_MACHINE_S = 400


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={_SMALL}", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("only where a file system can be mounted")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=False)


def test_a_full_disk_ends_a_run_in_one_line_and_with_room_it_goes_on(
    small_disk: Path, tmp_path: Path
) -> None:
    schedule = ByRates(Shape(40).constant(60), slot_s=1.0)
    made = GeneratedTrips(schedule, acceleration=60, seed=5)
    lines = [made.line(number) for number in range(schedule.total)]
    trips = tmp_path / "trips.csv"
    trips.write_text("".join(f"{line}\n" for line in lines))
    out = small_disk / "run"
    command = [sys.executable, "-m", "penstock", "run", "top-routes", "--input", str(trips), "--until-done"]

    def run() -> tuple[int, str]:
        with subprocess.Popen(
            [*command, "--out", str(out)], stderr=subprocess.PIPE, text=True, process_group=0
        ) as process:
            try:
                _, said = process.communicate(timeout=_SLOW_MACHINE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            return process.returncode, said

    status, said = run()
    assert status == 1
    assert "No space left on device" in said
    assert "Traceback" not in said
    deadline = time.monotonic() + 20
    while subprocess.run(["pgrep", "-f", str(out)], capture_output=True, check=False).stdout:
        assert time.monotonic() < deadline, "a process is left"
        time.sleep(0.2)
    subprocess.run(["mount", "-o", f"remount,size={_LARGE}", str(small_disk)], check=True)
    status, said = run()
    assert status == 0, said
    assert problems(lines, (out / "results" / "top-routes.csv").read_text().splitlines()) == []
