"""Q-learning (Russo 2023, Alg. 1 and eq. 5; Cardellini 2018, sec. 5.2.1)."""

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled
from penstock.perf.deployments import NOTHING, NOWHERE, actions_of, after
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.policy.parameters import Param
from penstock.policy.registry import operator_policy
from penstock.policy.rl.experience import (
    UNKNOWN,
    action_carried_out,
    deployment_then,
    level_then,
    no_decision,
    random_action,
    remember,
    score,
)
from penstock.policy.rl.problem import Problem, known_cost, level_of, unknown_cost
from penstock.policy.rl.schedules import Schedule, advance, schedule
from penstock.policy.rl.tables import (
    ValueTable,
    row_to_read,
    row_to_write,
    value_at,
    value_table,
    with_room,
)


@dataclass(frozen=True, kw_only=True)
class StepSize:
    """How far a learner moves towards what it has just seen, over time (Russo 2023, sec. 6.2).

    The paper prints the decays without floors; with none, learning would be over after a
    few thousand slots, and the paper's own Fig. 24 shows it going on after 200,000.
    """

    alpha_start: Annotated[float, Param("initial step size", above=0, at_most=1)] = 1.0
    alpha_factor: Annotated[float, Param("factor by which the step size decays", above=0, at_most=1)] = 0.98
    alpha_every: Annotated[int, Param("steps between decays of the step size", at_least=1)] = 10
    alpha_floor: Annotated[float, Param("smallest step size", at_least=0, at_most=1)] = 0.1

    def alpha(self) -> Schedule:
        return schedule(
            self.alpha_start, factor=self.alpha_factor, every=self.alpha_every, floor=self.alpha_floor
        )


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """How often a learner tries an action at random, over time."""

    epsilon_start: Annotated[float, Param("initial probability of exploring", at_least=0, at_most=1)] = 1.0
    epsilon_factor: Annotated[
        float, Param("factor by which exploring decays at every step", above=0, at_most=1)
    ] = 0.95
    epsilon_floor: Annotated[float, Param("smallest probability of exploring", at_least=0, at_most=1)] = 0.01

    def epsilon(self) -> Schedule:
        return schedule(self.epsilon_start, factor=self.epsilon_factor, floor=self.epsilon_floor)


@dataclass(frozen=True, kw_only=True)
class LearningRates(Exploration, StepSize):
    """Step size and exploration over time."""


class QLearner(NamedTuple):
    """Q(s, a), one row per state."""

    problem: Problem
    gamma: float
    q: ValueTable
    alpha: Schedule
    epsilon: Schedule
    last: Ints
    largest_gain: Floats


@operator_policy("ql", chance=True, needs_model=True, has_bounds=True)
@dataclass(frozen=True, kw_only=True)
class QLearning(CompiledPolicy[QLearner]):
    """Q-learning: learns the value of every action in every state by trying."""

    problem: Problem
    gamma: Annotated[float, Param("discount factor for later costs", at_least=0, below=1)] = 0.99
    rates: LearningRates = field(default_factory=LearningRates)
    expected_steps: int = 100_000  # sizes a hashed table; it grows when live

    def initial(self) -> QLearner:
        p = self.problem
        rows = p.deployments.replicas.size if p.deployments.enumerated else 2**62
        return QLearner(
            problem=p,
            gamma=self.gamma,
            q=value_table(
                keys=rows * p.levels, width=2 * p.deployments.speedup.size + 1, writes=self.expected_steps
            ),
            alpha=self.rates.alpha(),
            epsilon=self.rates.epsilon(),
            last=no_decision(),
            largest_gain=np.ones(1),
        )

    def prepared(self, memory: QLearner) -> QLearner:
        q = with_room(memory.q)
        return memory if q is memory.q else memory._replace(q=q)


@compiled
def best_action(me: QLearner, here: int, row: int) -> tuple[int, float]:
    """The first possible action of least value."""
    space = me.problem.deployments
    best, least = NOTHING, value_at(me.q, row, NOTHING)
    for action in range(1, actions_of(space)):
        value = value_at(me.q, row, action)
        if value < least and after(space, here, action) != NOWHERE:
            best, least = action, value
    return best, least


@step_of(QLearner)
def q_learning_step(me: QLearner, seen: Seen, rng: Generator) -> tuple[int, float]:
    p = me.problem
    here = seen.deployment
    level = level_of(p, seen.rate)
    key = here * p.levels + level
    row = row_to_read(me.q, key)
    action, least = best_action(me, here, row)

    carried_out = action_carried_out(me.last, here)
    if carried_out != UNKNOWN:
        cost = known_cost(p, carried_out, here) + unknown_cost(p, seen)
        key_then = deployment_then(me.last) * p.levels + level_then(me.last)
        row_then = row_to_write(me.q, key_then)
        alpha = me.alpha.now[0]
        me.q.values[row_then, carried_out] = (1.0 - alpha) * me.q.values[row_then, carried_out] + alpha * (
            cost + me.gamma * least
        )  # eq. (5)
        advance(me.alpha)
        if key_then == key:
            row = row_then
            action, least = best_action(me, here, row)

    if rng.random() <= me.epsilon.now[0]:
        action = random_action(p.deployments, here, rng)
    advance(me.epsilon)
    target = after(p.deployments, here, action)
    remember(me.last, here, level, action, target)
    stay = value_at(me.q, row, NOTHING)
    return target, score(me.largest_gain, stay, least, value_at(me.q, row, action))
