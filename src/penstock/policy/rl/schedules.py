"""Parameters that decay as learning goes on."""

from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints, compiled


class Schedule(NamedTuple):
    """start * factor^floor(steps / every), never below the floor."""

    now: Floats  # [current value]
    steps: Ints  # [steps since the last decay]
    factor: float
    every: int
    floor: float


def schedule(start: float, *, factor: float = 1.0, every: int = 1, floor: float = 0.0) -> Schedule:
    return Schedule(np.array([start]), np.zeros(1, dtype=np.int64), float(factor), int(every), float(floor))


@compiled
def advance(schedule: Schedule) -> None:
    """Note that one step was made with the current value."""
    schedule.steps[0] += 1
    if schedule.steps[0] == schedule.every:
        schedule.steps[0] = 0
        schedule.now[0] = max(schedule.now[0] * schedule.factor, schedule.floor)
