"""Machine code on disk: other people's policies must not spoil it for the next process."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from penstock.compiled import _cache_directory

FOREIGN = """
from typing import NamedTuple

import numpy as np

from penstock.control.spec import Manager
from penstock.simulation.one_operator import operator_of
from penstock.simulation.spec import OneOperator
from penstock.policy.kernel import Seen, step_of
from penstock.runtimes.sim.episode import no_totals, run, trail_of, world_of


class Stay(NamedTuple):
    patience: float


@step_of(Stay)
def stay(memory, seen, rng):
    return seen.deployment, memory.patience


rates = np.full(5, 10.0)
op = operator_of(OneOperator(operator_policy=Manager("fixed"), infrastructure="A:1"), rates, rates, 1)
totals = no_totals(1)
run(world_of(op), Stay(0.0), rates, 0, np.random.default_rng(1), totals, trail_of(0))
assert totals.counts[0] == 5
"""


def test_a_policy_from_outside_leaves_the_cache_usable_for_those_without_it(tmp_path: Path) -> None:
    (tmp_path / "foreign_policy.py").write_text(FOREIGN)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    ours = [sys.executable, "-m", "penstock", "simulate", "--policy", "fixed", "--slots", "10", "--json"]
    for command, directory in (
        ([sys.executable, "-c", "import foreign_policy"], tmp_path),
        (ours, elsewhere),
    ):
        done = subprocess.run(
            command, cwd=directory, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr


# M/M/1 with a service time of .02 s and 25 tuples/s: R = .02 s / (1 - .5) = .04 s.
RESPONSE_TIME = """
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.perf.deployments import deployments, handle_of
from penstock.perf.operator import response_time
from penstock.perf.queueing import m_m_1

space = deployments([NodeType(name="a", speedup=1.0, price=1.0)], 2)
print(response_time(m_m_1(0.02), space, handle_of(space, Replicas((1,))), 25.0))
print(sum(response_time.dispatcher.stats.cache_misses.values()))
"""


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    compilations, files = [], []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", RESPONSE_TIME],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        seconds, compiled = done.stdout.split()
        assert float(seconds) == pytest.approx(0.04)
        compilations.append(int(compiled))
        files.append({path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")})
    assert compilations == [1, 0]
    assert files[0]
    assert files[1] == files[0]


def test_sources_edited_since_they_were_imported_are_not_what_the_cache_is_named_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, passing = tmp_path / "kept", tmp_path / "passing"
    passing.mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(kept))
    monkeypatch.setattr(tempfile, "tempdir", str(passing))
    assert _cache_directory("1.0").is_relative_to(kept)
    monkeypatch.setattr("penstock.compiled._IMPORTED_AT_NS", 0)
    assert _cache_directory("1.0").is_relative_to(passing)
