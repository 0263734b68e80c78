"""Scaling to a number of replicas: add nodes of one type, release the oldest.

Shared by the policies that compute how many replicas they want, in one jump.
"""

from typing import NamedTuple

import numpy as np

from penstock.compiled import Ints, compiled
from penstock.perf.deployments import NOWHERE, Deployments, adding, after, count_of, removing, replicas_of


class Fleet(NamedTuple):
    """Node types of the running replicas, oldest first."""

    deployments: Deployments
    types: Ints  # the first `size[0]` entries are in use
    size: Ints


def no_fleet(deployments: Deployments) -> Fleet:
    return Fleet(deployments, np.zeros(deployments.max_replicas, dtype=np.int64), np.zeros(1, dtype=np.int64))


@compiled
def acknowledge(fleet: Fleet, here: int) -> None:
    """Take note of what runs; where someone else changed it, ages are unknown and types count in order."""
    space = fleet.deployments
    same = fleet.size[0] == replicas_of(space, here)
    for node_type in range(space.speedup.size):
        known = 0
        for index in range(fleet.size[0]):
            if fleet.types[index] == node_type:
                known += 1
        same = same and known == count_of(space, here, node_type)
    if same:
        return
    fleet.size[0] = 0
    for node_type in range(space.speedup.size):
        for _ in range(count_of(space, here, node_type)):
            fleet.types[fleet.size[0]] = node_type
            fleet.size[0] += 1


@compiled
def resize(fleet: Fleet, here: int, wanted: int, node_type: int) -> int:
    """The deployment with `wanted` replicas: more of `node_type`, or without the oldest."""
    space = fleet.deployments
    wanted = max(1, min(wanted, space.max_replicas))
    while replicas_of(space, here) < wanted:
        here = after(space, here, adding(space, node_type))
        fleet.types[fleet.size[0]] = node_type
        fleet.size[0] += 1
    while replicas_of(space, here) > wanted:
        fewer = after(space, here, removing(space, fleet.types[0]))
        if fewer == NOWHERE:
            return here
        here = fewer
        fleet.size[0] -= 1
        for index in range(fleet.size[0]):
            fleet.types[index] = fleet.types[index + 1]
    return here
