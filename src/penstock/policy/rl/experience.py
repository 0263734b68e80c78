"""What learners have in common: remembering the last decision, exploring, scoring."""

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled
from penstock.perf.deployments import NOTHING, NOWHERE, Deployments, actions_of, after

NEVER = -1
UNKNOWN = -1

# Fields of a last decision.
_DEPLOYMENT, _LEVEL, _ACTION, _TARGET = range(4)


def no_decision() -> Ints:
    """The memory of a last decision before there is one."""
    return np.array([NEVER, 0, NOTHING, NOWHERE], dtype=np.int64)


@compiled
def remember(last: Ints, deployment: int, level: int, action: int, target: int) -> None:
    last[_DEPLOYMENT] = deployment
    last[_LEVEL] = level
    last[_ACTION] = action
    last[_TARGET] = target


@compiled
def deployment_then(last: Ints) -> int:
    return int(last[_DEPLOYMENT])


@compiled
def level_then(last: Ints) -> int:
    return int(last[_LEVEL])


@compiled
def action_carried_out(last: Ints, here: int) -> int:
    """What was really done: the action chosen, nothing if refused, UNKNOWN if someone else intervened."""
    if last[_DEPLOYMENT] == NEVER:
        return UNKNOWN
    if here == last[_TARGET]:
        return int(last[_ACTION])
    return NOTHING if here == last[_DEPLOYMENT] else UNKNOWN


@compiled
def random_action(space: Deployments, here: int, rng: Generator) -> int:
    """A possible action, each equally likely."""
    possible = 0
    for action in range(actions_of(space)):
        if after(space, here, action) != NOWHERE:
            possible += 1
    pick = int(rng.random() * possible)
    for action in range(actions_of(space)):
        if after(space, here, action) != NOWHERE:
            if pick == 0:
                return action
            pick -= 1
    return NOTHING


@compiled
def score(largest_gain: Floats, stay: float, least: float, move: float) -> float:
    """Expected gain of a move over the largest ever expected of any (Cardellini 2018, sec. 5.2).

    `stay`, `least` and `move` are the values of doing nothing, of the best action and of the
    one taken, which differ when exploring.
    """
    largest_gain[0] = max(largest_gain[0], stay - least)
    return float(max(stay - move, 0.0) / largest_gain[0])
