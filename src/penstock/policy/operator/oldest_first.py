"""Scaling to a given number of replicas: add nodes of one type, release the oldest.

Shared by the policies that compute how many replicas they want, in one jump.
"""

from typing import NamedTuple

import numpy as np

from penstock.compiled import Ints, compiled
from penstock.perf.deployments import Deployments, adding, after, count_of, removing, replicas_of


class Fleet(NamedTuple):
    """Node types of the running replicas, oldest first."""

    deployments: Deployments
    types: Ints  # the first `size[0]` entries are in use
    size: Ints


def no_fleet(deployments: Deployments) -> Fleet:
    return Fleet(deployments, np.zeros(deployments.max_replicas, dtype=np.int64), np.zeros(1, dtype=np.int64))


@compiled
def _known(fleet: Fleet, node_type: int) -> int:
    known = 0
    for index in range(fleet.size[0]):
        if fleet.types[index] == node_type:
            known += 1
    return known


@compiled
def acknowledge(fleet: Fleet, here: int) -> None:
    """Take note of what runs: of each type the oldest have gone, or new ones have come."""
    space = fleet.deployments
    for node_type in range(space.speedup.size):  # first, to make room
        _forget_oldest(fleet, node_type, _known(fleet, node_type) - count_of(space, here, node_type))
    for node_type in range(space.speedup.size):
        for _ in range(count_of(space, here, node_type) - _known(fleet, node_type)):
            fleet.types[fleet.size[0]] = node_type
            fleet.size[0] += 1


@compiled
def _forget_oldest(fleet: Fleet, node_type: int, gone: int) -> None:
    kept = 0
    for index in range(fleet.size[0]):
        if fleet.types[index] == node_type and gone > 0:
            gone -= 1
        else:
            fleet.types[kept] = fleet.types[index]
            kept += 1
    fleet.size[0] = kept


@compiled
def resize(fleet: Fleet, here: int, wanted: int, node_type: int) -> int:
    """The deployment with `wanted` replicas: more of `node_type`, or without the oldest.

    The fleet is left as it is; it changes once the change has been observed.
    """
    space = fleet.deployments
    wanted = max(1, min(wanted, space.max_replicas))
    while replicas_of(space, here) < wanted:
        here = after(space, here, adding(space, node_type))
    oldest = 0
    while replicas_of(space, here) > wanted:
        here = after(space, here, removing(space, fleet.types[oldest]))
        oldest += 1
    return here


@compiled
def resized(fleet: Fleet, here: int, wanted: int, node_type: int) -> int:
    """Take note of what runs; the deployment with `wanted` replicas."""
    acknowledge(fleet, here)
    return resize(fleet, here, wanted, node_type)
