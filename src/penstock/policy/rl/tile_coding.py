"""Linear features by tile coding, as Q-learning with function approximation uses them (Russo 2023, [54]).

A state after an action is seen as (x, y, z): replicas in all, rate level, set of node types
in use. Two grids over (x, y, z), one shifted along y; stripes along y - 2x, where load per
replica is alike; and a bias for adding and one for removing.
"""

from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints, compiled, frozen_ints
from penstock.domain.errors import InputError
from penstock.perf.deployments import NOTHING, count_of, counts_at, replicas_of
from penstock.policy.rl.problem import Problem

LEVEL_TILES = 15
MOST_TYPES = 20  # a grid has 2^types cells along z


class Tiles(NamedTuple):
    """One weight per tile, all 0 at first."""

    problem: Problem
    biases: Floats  # [adding, removing]
    grid: Floats
    shifted_grid: Floats
    stripes: Floats
    types_in_use: Ints  # bit mask per enumerated deployment, first type least significant
    lowest_stripe: int  # y - 2x of the first
    stripe_width: int


def tiles(problem: Problem) -> Tiles:
    types, most = problem.deployments.speedup.size, problem.deployments.max_replicas
    if types > MOST_TYPES:
        raise InputError(
            f"{types} node types: tile coding by the set of types in use handles at most {MOST_TYPES}"
        )
    lowest, highest = -2 * most, problem.levels - 1 - 2
    width = max((highest - lowest) // (most + 1), 1)
    shape = (most + 1, LEVEL_TILES, 2**types)
    return Tiles(
        problem,
        np.zeros(2),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros((highest - lowest) // width + 1),
        frozen_ints(_masks(problem)),
        lowest,
        width,
    )


@compiled
def interval(value: float, low: float, high: float, cells: int) -> int:
    """Which of `cells` equal intervals a value lies in; a boundary belongs to the lower one."""
    return max(int(np.ceil(cells * (value - low) / (high - low))) - 1, 0)


def _masks(problem: Problem) -> Ints:
    rows = np.arange(problem.deployments.replicas.size)
    used = counts_at(problem.deployments, rows) > 0
    masks: Ints = (used << np.arange(used.shape[1])).sum(axis=1, dtype=np.int64)
    return masks


@compiled
def types_in_use(me: Tiles, deployment: int) -> int:
    """The set of node types in use as a bit mask."""
    if me.types_in_use.size > 0:
        return int(me.types_in_use[deployment])
    problem = me.problem
    mask = 0
    for node_type in range(problem.deployments.speedup.size):
        if count_of(problem.deployments, deployment, node_type) > 0:
            mask |= 1 << node_type
    return mask


@compiled
def active(me: Tiles, deployment: int, level: int) -> tuple[int, int, int, int, int]:
    """Indices of the tiles a state falls into: replicas, level, shifted level, types, stripe."""
    levels = me.problem.levels
    most = me.problem.deployments.max_replicas
    replicas = replicas_of(me.problem.deployments, deployment)
    tile_height = levels / LEVEL_TILES
    return (
        interval(replicas, 1.0, most + 1.0, most + 1),
        interval(level, 0.0, levels, LEVEL_TILES),
        interval(level, -tile_height / 2.0, levels + 1.0, LEVEL_TILES),
        types_in_use(me, deployment),
        (level - 2 * replicas - me.lowest_stripe) // me.stripe_width,
    )


@compiled
def estimate(me: Tiles, action: int, deployment: int, level: int) -> float:
    """The value of reaching this deployment by this action: the sum of the active weights."""
    x, y, shifted_y, z, stripe = active(me, deployment, level)
    value = me.grid[x, y, z] + me.shifted_grid[x, shifted_y, z] + me.stripes[stripe]
    if action != NOTHING:
        value += me.biases[0 if action > me.problem.deployments.speedup.size else 1]
    return float(value)


@compiled
def nudge(me: Tiles, action: int, deployment: int, level: int, amount: float) -> None:
    """Add to every active weight."""
    x, y, shifted_y, z, stripe = active(me, deployment, level)
    me.grid[x, y, z] += amount
    me.shifted_grid[x, shifted_y, z] += amount
    me.stripes[stripe] += amount
    if action != NOTHING:
        me.biases[0 if action > me.problem.deployments.speedup.size else 1] += amount
