"""Q-learning with linear function approximation (QL+FA of Russo 2023, from Russo Russo et al., DEBS 2019).

Semi-gradient Q-learning on tile-coded features of the post-decision state.
"""

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled
from penstock.perf.deployments import NOTHING, NOWHERE, actions_of, after
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.policy.operator.q_learning import LearningRates
from penstock.policy.parameters import Param
from penstock.policy.registry import operator_policy
from penstock.policy.rl.experience import (
    UNKNOWN,
    action_carried_out,
    level_then,
    no_decision,
    random_action,
    remember,
    score,
)
from penstock.policy.rl.problem import Problem, known_cost, level_of, unknown_cost
from penstock.policy.rl.schedules import Schedule, advance, schedule
from penstock.policy.rl.tile_coding import Tiles, estimate, nudge, tiles


class LinearQLearner(NamedTuple):
    """The weights and the last decision."""

    tiles: Tiles
    gamma: float
    alpha: Schedule
    epsilon: Schedule
    last: Ints
    largest_gain: Floats


@operator_policy("ql-fa", chance=True, needs_model=True, has_bounds=True)
@dataclass(frozen=True, kw_only=True)
class LinearQ(CompiledPolicy[LinearQLearner]):
    """Q-learning with linear features: generalises over states that look alike, in little memory."""

    problem: Problem
    gamma: Annotated[float, Param("discount factor for later costs", at_least=0, below=1)] = 0.99
    # Every step moves 3 or 4 weights at once: a step size of 1 would overshoot fourfold.
    alpha: Annotated[
        float, Param("step size; published updates let it decay from alpha_start instead", above=0, at_most=1)
    ] = 0.1
    rates: LearningRates = field(default_factory=LearningRates)
    published_updates: bool = False  # with that step size of 1, decaying; seeds then end up far apart

    def initial(self) -> LinearQLearner:
        return LinearQLearner(
            tiles=tiles(self.problem),
            gamma=self.gamma,
            alpha=self.rates.alpha() if self.published_updates else schedule(self.alpha),
            epsilon=self.rates.epsilon(),
            last=no_decision(),
            largest_gain=np.ones(1),
        )


@compiled
def best_action(me: LinearQLearner, here: int, level: int) -> tuple[int, float, float]:
    """The first possible action of least value, that value, and the value of doing nothing."""
    space = me.tiles.problem.deployments
    stay = estimate(me.tiles, NOTHING, here, level)
    best, least = NOTHING, stay
    for action in range(1, actions_of(space)):
        target = after(space, here, action)
        if target != NOWHERE:
            value = estimate(me.tiles, action, target, level)
            if value < least:
                best, least = action, value
    return best, least, stay


@step_of(LinearQLearner)
def linear_q_step(me: LinearQLearner, seen: Seen, rng: Generator) -> tuple[int, float]:
    p = me.tiles.problem
    here = seen.deployment
    level = level_of(p, seen.rate)
    carried_out = action_carried_out(me.last, here)
    if carried_out != UNKNOWN:
        _, least, _ = best_action(me, here, level)
        cost = known_cost(p, carried_out, here) + unknown_cost(p, seen)
        then = level_then(me.last)
        error = cost + me.gamma * least - estimate(me.tiles, carried_out, here, then)
        nudge(me.tiles, carried_out, here, then, me.alpha.now[0] * error)
        advance(me.alpha)
    action, least, stay = best_action(me, here, level)
    if rng.random() <= me.epsilon.now[0]:
        action = random_action(p.deployments, here, rng)
    advance(me.epsilon)
    target = after(p.deployments, here, action)
    remember(me.last, here, level, action, target)
    taken = estimate(me.tiles, action, target, level)
    return target, score(me.largest_gain, stay, least, taken)
