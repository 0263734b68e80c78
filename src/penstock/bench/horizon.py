"""How long a decision of model predictive control takes, by its horizon, beside the paper's search."""

import os
import time
from collections.abc import Callable, Iterator

import numpy as np

from penstock.bench.figure import Figure
from penstock.compiled import Floats
from penstock.planning.evolution_tree import explore
from penstock.planning.horizon import best_move

_SHAPE = (12, 9)  # replicas and frequencies, as in the paper
_HERE, _SWITCHING = 50, 0.4
_MOST_US = {3: 60.0, 50: 600.0}
_HORIZONS = (1, 2, 3, 5, 10, 20, 50)
_TREES = (1, 2, 3)
_CASES = 1000
STAGES = 3


def run_horizon(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """Random costs: what is best depends on all of them."""
    yield Figure(name="machine load before", value=os.getloadavg()[0], unit="")
    rng = np.random.default_rng(1)
    stage("the dynamic programme")
    ours = {}
    for horizon in _HORIZONS:
        costs = [rng.uniform(0, 10, (horizon, 108)) for _ in range(200)]
        ours[horizon] = _microseconds(lambda one: best_move(one, _SHAPE, _HERE, _SWITCHING), costs)
        name = f"a decision, h = {horizon}"
        yield Figure(name=name, value=ours[horizon], unit="us", at_most=_MOST_US.get(horizon))
    stage("the paper's branch and bound")
    for horizon in _TREES:
        costs = [rng.uniform(0, 10, (horizon, 108)) for _ in range(20)]
        theirs = _microseconds(lambda one: explore(one, _SHAPE, _HERE, _SWITCHING, prune=True), costs)
        yield Figure(
            name=f"branch and bound over ours, h = {horizon}", value=theirs / ours[horizon], unit="x"
        )
    stage(f"{_CASES} cases against an exhaustive search")
    same = 0
    for number in range(_CASES):
        one = rng.uniform(0, 10, (1 + number % 3, 108))
        move, tree = (
            best_move(one, _SHAPE, _HERE, _SWITCHING),
            explore(one, _SHAPE, _HERE, _SWITCHING, prune=False),
        )
        same += move.place == tree.place and abs(move.value - tree.value) < 1e-9
    yield Figure(
        name="cases with the move and value of an exhaustive search", value=same, unit="", at_least=_CASES
    )


def _microseconds(act: Callable[[Floats], object], on: list[Floats]) -> float:
    act(on[0])  # compiled
    began_s = time.perf_counter()
    for one in on:
        act(one)
    return 1e6 * (time.perf_counter() - began_s) / len(on)
