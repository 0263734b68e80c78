"""Tile coding: the reference's formulas, and no state outside any table (compiled code checks no bounds)."""

from itertools import product
from math import ceil

import pytest
from policy_cases import at, node_types, problem_of, space_of

from penstock.domain.errors import InputError
from penstock.perf.deployments import NOTHING, adding, removing, replicas_at
from penstock.policy.rl.tile_coding import Tiles, active, estimate, nudge, tiles


def tiled(types: int, most: int, levels: int, *, packed: bool = False) -> Tiles:
    space = space_of(node_types(tuple(1.0 + 0.1 * i for i in range(types))), most, packed=packed)
    return tiles(problem_of(space, levels=levels, max_rate=100.0 * levels))


@pytest.mark.parametrize(("types", "most"), [(1, 1), (1, 10), (2, 5), (3, 4), (1, 40)])
def test_every_state_lies_inside_every_table(types: int, most: int) -> None:
    for levels in (1, 2, 7, 15, 30, 60):
        me = tiled(types, most, levels)
        states = product(range(me.problem.deployments.replicas.size), range(levels))
        for deployment, level in states:
            x, y, shifted_y, z, stripe = active(me, deployment, level)
            assert all(0 <= i < n for i, n in zip((x, y, z), me.grid.shape, strict=True))
            assert 0 <= shifted_y < me.shifted_grid.shape[1]
            assert 0 <= stripe < me.stripes.size


def test_tiles_are_those_of_the_reference() -> None:
    """Cells and ranges of the published code: K = 10, 30 levels, 3 types."""
    most, levels, types = 10, 30, 3
    me = tiled(types, most, levels)
    space = me.problem.deployments

    def interval(value: float, low: float, high: float, cells: int) -> int:
        return max(ceil(cells * (value - low) / (high - low)) - 1, 0)

    assert me.grid.shape == me.shifted_grid.shape == (most + 1, 15, 2**types)
    lowest, highest = 0 - 2 * most, levels - 1 - 2 * 1  # of y - 2x
    for deployment in range(space.replicas.size):
        counts = replicas_at(space, deployment).counts
        in_use = sum(1 << index for index, count in enumerate(counts) if count)
        for level in range(levels):
            assert active(me, deployment, level) == (
                interval(sum(counts), 1, most + 1, most + 1),
                interval(level, 0, levels, 15),
                interval(level, -levels / 15 / 2, levels + 1, 15),
                in_use,
                (level - 2 * sum(counts) - lowest) // ((highest - lowest) // (most + 1)),
            )


def test_packed_deployments_fall_into_the_tiles_of_listed_ones() -> None:
    listed, packed = tiled(3, 4, 30), tiled(3, 4, 30, packed=True)
    spaces = listed.problem.deployments, packed.problem.deployments
    for row in range(spaces[0].replicas.size):
        handle = at(spaces[1], *replicas_at(spaces[0], row).counts)
        for level in range(30):
            assert active(packed, handle, level) == active(listed, row, level)


def test_a_nudge_moves_three_weights_and_a_fourth_when_something_changes() -> None:
    me = tiled(2, 4, 30)
    space = me.problem.deployments
    here = at(space, 1, 1)
    nudge(me, NOTHING, here, 10, 0.5)
    assert estimate(me, NOTHING, here, 10) == 3 * 0.5
    assert me.biases.tolist() == [0.0, 0.0]
    nudge(me, adding(space, 1), here, 10, 0.25)
    nudge(me, removing(space, 0), here, 10, 0.125)
    assert me.biases.tolist() == [0.25, 0.125]
    assert estimate(me, adding(space, 0), here, 10) == 3 * 0.875 + 0.25
    assert estimate(me, removing(space, 1), here, 10) == 3 * 0.875 + 0.125
    assert sum(part.sum() for part in (me.grid, me.shifted_grid, me.stripes)) == 3 * 0.875


def test_more_node_types_than_a_grid_can_hold_are_refused() -> None:
    with pytest.raises(
        InputError, match="21 node types: tile coding by the set of types in use handles at most 20"
    ):
        tiled(21, 1, 3)
