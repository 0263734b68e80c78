"""Experience replay: the last experiences, first in first out, and batches of them without replacement.

An experience is a transition in a few small numbers, encoded anew when it is drawn: 28 bytes
instead of a vector of inputs, so that copying, or saving, ten thousand of them is cheap.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled

SmallInts = npt.NDArray[np.int32]

# Fields of a transition.
LEVEL, ACTION, FOLLOWING = range(3)


class Replay(NamedTuple):
    """The experiences, by place; the oldest is overwritten."""

    deployment: Ints
    transition: SmallInts  # place x (level, action, level that followed)
    cost: Floats
    stored: Ints  # [experiences so far, those forgotten included]
    batch: Ints  # places drawn last


def replay(*, capacity: int, batch: int) -> Replay:
    return Replay(
        deployment=np.zeros(capacity, dtype=np.int64),
        transition=np.zeros((capacity, 3), dtype=np.int32),
        cost=np.zeros(capacity),
        stored=np.zeros(1, dtype=np.int64),
        batch=np.zeros(batch, dtype=np.int64),
    )


@compiled
def store(me: Replay, deployment: int, level: int, action: int, following: int, cost: float) -> None:
    place = me.stored[0] % me.cost.size
    me.deployment[place] = deployment
    me.transition[place, LEVEL] = level
    me.transition[place, ACTION] = action
    me.transition[place, FOLLOWING] = following
    me.cost[place] = cost
    me.stored[0] += 1


@compiled
def remembered(me: Replay) -> int:
    """How many experiences there are to draw from."""
    return min(int(me.stored[0]), me.cost.size)


@compiled
def draw(me: Replay, rng: Generator) -> None:
    """Fill `batch` with different places, every set of them equally likely (Floyd's algorithm)."""
    size = me.batch.size
    beyond = remembered(me) - size
    for index in range(size):
        place = int(rng.random() * (beyond + index + 1))
        for earlier in range(index):
            if me.batch[earlier] == place:
                place = beyond + index
                break
        me.batch[index] = place


@compiled
def first_with(keys: Ints, index: int) -> int:
    """The first of a batch with the key that this one has."""
    for earlier in range(index):
        if keys[earlier] == keys[index]:
            return earlier
    return index
