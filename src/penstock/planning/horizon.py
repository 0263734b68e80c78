"""The best sequence of configurations over a horizon, exactly (De Matteis 2017, sec. 3.3).

What a step costs depends on its configuration and on the one before it, through the squared distance
between the two (eq. 15). So a dynamic programme from the last step backwards finds the best sequence, and
since a squared Euclidean distance is a sum over dimensions, one dimension at a time: with N replicas and F
frequencies a step takes N * F * (N + F) sums, where the paper's tree has (N * F) branches at every node.
"""

from math import prod
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints, compiled, compiled_allocating
from penstock.domain.errors import InputError


class Move(NamedTuple):
    """What to run next, and what the whole horizon costs."""

    place: int  # in the grid, as a flat index
    value: float


def best_move(costs: Floats, shape: tuple[int, ...], here: int, switching: float) -> Move:
    """The first configuration of the cheapest sequence.

    `costs` has a row per step and a column per configuration; configurations are the points of a grid of
    this shape, in C order, and those that cannot be cost infinity. Of equals, the one nearest to `here`,
    then the first.
    """
    check(costs, shape, here, switching)
    sizes = np.array(shape, np.int64)
    place, value = _best_move(np.ascontiguousarray(costs, np.float64), sizes, int(here), float(switching))
    return Move(int(place), float(value))


def check(costs: Floats, shape: tuple[int, ...], here: int, switching: float) -> None:
    """Raise an error where these make no problem."""
    count = prod(shape)
    if costs.ndim != 2 or costs.shape[0] < 1:
        raise InputError("horizon: at least one step is needed")
    if costs.shape[1] != count:
        raise InputError(f"horizon: {costs.shape[1]} costs for a grid of {count} configurations")
    if not 0 <= here < costs.shape[1]:
        raise InputError(f"horizon: configuration {here} is not one of {costs.shape[1]}")
    if np.isnan(costs).any() or (costs == -np.inf).any():
        raise InputError("horizon: a cost is not a number")
    if not 0 <= switching < np.inf:
        raise InputError(f"horizon: switching cost {switching}; it must be finite and not negative")


@compiled_allocating
def _best_move(costs: Floats, sizes: Ints, here: int, switching: float) -> tuple[int, float]:
    steps, count = costs.shape
    after = costs[steps - 1].copy()  # from here to the end, by configuration
    room = np.empty(count)
    for step in range(steps - 2, -1, -1):
        spread(after, room, sizes, switching)
        for place in range(count):
            after[place] += costs[step, place]
    best, value, nearest = here, np.inf, np.inf
    for place in range(count):
        apart = squared_distance(sizes, here, place)
        total = after[place] + switching * apart
        if total < value or (total == value and apart < nearest and total < np.inf):
            best, value, nearest = place, total, apart
    return best, value


@compiled_allocating
def spread(after: Floats, room: Floats, sizes: Ints, switching: float) -> None:
    """Replace every value by the least of all values plus what it takes to go there."""
    stride = after.size
    for size in sizes:
        stride //= size
        room[:] = after
        for first in range(after.size):
            if (first // stride) % size != 0:
                continue
            for target in range(size):
                least = np.inf
                for origin in range(size):
                    value = room[first + origin * stride] + switching * (target - origin) ** 2
                    least = min(least, value)
                after[first + target * stride] = least


@compiled
def squared_distance(sizes: Ints, a: int, b: int) -> float:
    total = 0.0
    for index in range(sizes.size - 1, -1, -1):
        apart = a % sizes[index] - b % sizes[index]
        total += apart * apart
        a //= sizes[index]
        b //= sizes[index]
    return total
