"""Start-up: what a program pays for before it calls anything."""

import subprocess
import sys
from collections.abc import Sequence

import pytest

from penstock.bench.startup import startup_figures, wall_seconds

# The Gymnasium environment is only for those who have asked for gymnasium.
IMPORTS_ALL = """
import importlib, pkgutil, sys

for name in ("policy", "perf", "control", "domain", "runtimes.sim"):
    package = importlib.import_module(f"penstock.{name}")
    for module in pkgutil.walk_packages(package.__path__, f"penstock.{name}."):
        if module.name != "penstock.runtimes.sim.gym":
            importlib.import_module(module.name)
print(*{name.partition(".")[0] for name in sys.modules})
"""
SLOW = {"numba", "scipy", "sklearn", "pandas", "plotly", "pyspark"}


def test_what_decides_and_what_simulates_is_imported_without_any_slow_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS_ALL], capture_output=True, text=True, timeout=120, check=True
    )
    loaded = set(done.stdout.split())
    assert "numpy" in loaded  # the list is one of modules
    assert not loaded & SLOW


def test_a_start_is_the_best_of_all_rounds_but_the_first_over_the_best_empty_program() -> None:
    empty = iter((9.0, 0.04, 0.02))  # the first round fills the caches and counts for nothing
    simulate = iter((0.1, 0.8, 0.9))

    def seconds_of(arguments: Sequence[str]) -> float:
        if "pass" in arguments:
            return next(empty)
        return next(simulate) if "--slots" in arguments else 0.2

    figures = {figure.name: figure for figure in startup_figures(seconds_of, rounds=2)}
    assert figures["an empty Python program"].value == pytest.approx(20)  # ms
    simulated = figures["penstock simulate, ql-pds, 400,001 slots, over an empty program"]
    assert simulated.value == pytest.approx(0.8 / 0.02)
    assert simulated.ok  # below 60 empty programs
    helped = figures["penstock --help, over an empty program"]
    assert helped.value == pytest.approx(0.2 / 0.02)
    assert helped.ok


def test_the_time_of_a_program_is_how_long_somebody_waits_for_it() -> None:
    assert wall_seconds(["-c", "import time; time.sleep(.3)"]) >= 0.3


def test_a_program_that_fails_has_no_time() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        wall_seconds(["-c", "raise SystemExit(3)"])
