"""Machine code on disk: other people's policies must not spoil it for the next process."""

import os
import subprocess
import sys
from pathlib import Path

FOREIGN = """
from typing import NamedTuple

import numpy as np

from penstock.simulation.catalogue import operator_of
from penstock.simulation.play import world_of
from penstock.simulation.spec import OneOperator
from penstock.policy.kernel import Seen, step_of
from penstock.runtimes.sim.episode import no_totals, run, trail_of


class Stay(NamedTuple):
    patience: float


@step_of(Stay)
def stay(memory, seen, rng):
    return seen.deployment, memory.patience


rates = np.full(5, 10.0)
op = operator_of(OneOperator(policy="fixed", infrastructure="A:1"), rates, rates, np.random.default_rng(1))
totals = no_totals(1)
run(world_of(op, op.deployments), Stay(0.0), rates, 0, np.random.default_rng(1), totals, trail_of(0))
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
