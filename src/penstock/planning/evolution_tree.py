"""The paper's own search over its evolution tree (De Matteis 2017, sec. 3.3.2): the check of `horizon.py`.

A node of the tree is a sequence of configurations; its subtree is explored as long as what was spent on the
way is below the best whole sequence so far. Without that rule it is an exhaustive search.
"""

from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints, compiled_allocating
from penstock.planning.horizon import check, squared_distance


class Explored(NamedTuple):
    place: int
    value: float
    states: int  # nodes whose cost was worked out, leaves included


def explore(costs: Floats, shape: tuple[int, ...], here: int, switching: float, *, prune: bool) -> Explored:
    """Depth first, configurations in their order."""
    check(costs, shape, here, switching)
    place, value, states = _explore(costs, np.array(shape, np.int64), here, float(switching), prune)
    return Explored(int(place), float(value), int(states))


@compiled_allocating
def _explore(costs: Floats, sizes: Ints, here: int, switching: float, prune: bool) -> tuple[int, float, int]:
    steps, count = costs.shape
    path = np.full(steps, -1, np.int64)
    spent = np.zeros(steps + 1)
    depth, states = 0, 0
    best, value = here, np.inf
    while depth >= 0:
        path[depth] += 1
        place = path[depth]
        if place == count:
            path[depth] = -1
            depth -= 1
            continue
        before = here if depth == 0 else path[depth - 1]
        states += 1
        cost = spent[depth] + costs[depth, place] + switching * squared_distance(sizes, before, place)
        if prune and cost >= value:
            continue
        if depth + 1 < steps:
            depth += 1
            spent[depth] = cost
        elif cost < value:
            best, value = path[0], cost
    return best, value, states
