"""Value iteration where every change costs the same, whatever it changes.

Then only two things can be best: to stay, or to move to what is best at this level for anybody who has to
move. So a sweep takes as long as there are deployments, not pairs of them.

V(d, l) is what is still to come after deciding for deployment d at level l: the next level l', a violation
if d is not enough for it, and the better of staying and moving from there on.
"""

from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints, compiled

_SWEEPS_BETWEEN_LEAPS = 20


class Room(NamedTuple):
    """Arrays a sweep writes into, so that it allocates nothing."""

    probability: Floats  # level x following level
    first: Ints  # following level that is possible, by level
    end: Ints  # and the one after the last
    moving: Floats  # best value of moving, by level
    outlook: Floats  # by following level


def room_for(levels: int) -> Room:
    return Room(
        probability=np.zeros((levels, levels)),
        first=np.zeros(levels, dtype=np.int64),
        end=np.zeros(levels, dtype=np.int64),
        moving=np.zeros(levels),
        outlook=np.zeros(levels),
    )


@compiled
def find_possible(room: Room) -> None:
    """Which following levels are possible at all."""
    levels = room.moving.size
    for level in range(levels):
        first = 0
        while first < levels - 1 and room.probability[level, first] == 0.0:
            first += 1
        end = levels
        while end > first + 1 and room.probability[level, end - 1] == 0.0:
            end -= 1
        room.first[level] = first
        room.end[level] = end


@compiled
def iterate(
    values: Floats,
    rows: Ints,
    count: int,
    holding: Floats,
    violating: Floats,
    change: float,
    gamma: float,
    tolerance: float,
    most_sweeps: int,
    room: Room,
) -> int:
    """Improve the values of the first `count` of `rows` in place; returns the number of sweeps.

    `holding` is what an interval with a deployment costs and `violating` what a violation adds, by level,
    both by row. Ends once all values change by the same, give or take the tolerance: then their
    differences, which decide, are known. With a discount near 1 that is long before they are known
    themselves; at the end, and every now and then before, all of them leap by what they would still change.
    """
    levels = room.moving.size
    sweeps = 0
    while sweeps < most_sweeps:
        sweeps += 1
        for level in range(levels):
            least = np.inf
            for index in range(count):
                row = rows[index]
                least = min(least, holding[row] + values[row, level])
            room.moving[level] = change + least
        smallest = np.inf
        largest = -np.inf
        for index in range(count):
            row = rows[index]
            for level in range(levels):
                on = min(holding[row] + values[row, level], room.moving[level])
                room.outlook[level] = violating[row, level] + gamma * on
            for level in range(levels):
                expected = 0.0
                for following in range(room.first[level], room.end[level]):
                    expected += room.probability[level, following] * room.outlook[following]
                by = expected - values[row, level]
                smallest = min(smallest, by)
                largest = max(largest, by)
                values[row, level] = expected
        done = largest - smallest <= tolerance
        if done or sweeps % _SWEEPS_BETWEEN_LEAPS == 0:
            leap = gamma / (1.0 - gamma) * (smallest + largest) / 2.0
            for index in range(count):
                for level in range(levels):
                    values[rows[index], level] += leap
        if done:
            break
    return sweeps
