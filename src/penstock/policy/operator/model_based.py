"""Model-based reinforcement learning with full backups (Cardellini 2018, sec. 5.2.2, Alg. 2).

Learns how rates move between levels and what a violation costs where, and plans with
both. Adding replicas cannot hurt and more load cannot help, so every observation also
bounds the states it is comparable with.

With several node types "more replicas" is not an order: adding a slow node to fast ones
makes the slowest replica slower. One deployment is at least as good as another when it
has as many replicas and its slowest is as fast.

As published, Q(s, a) is backed up instead of V(s~), bounds go along rate levels only, and
the loop that spreads a bound is left with the current level changed.
"""

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled
from penstock.perf.deployments import NOTHING, NOWHERE, actions_of, after
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.policy.operator.q_learning import StepSize
from penstock.policy.parameters import Param
from penstock.policy.registry import operator_policy
from penstock.policy.rl.backup import need_enumeration, sweep, sweep_actions
from penstock.policy.rl.experience import (
    UNKNOWN,
    action_carried_out,
    level_then,
    no_decision,
    remember,
    score,
)
from penstock.policy.rl.post_decision import PostDecision, best_action, post_decision, values_in_words
from penstock.policy.rl.problem import Problem, level_of, unknown_cost
from penstock.policy.rl.schedules import Schedule, advance
from penstock.policy.rl.tables import value_table

_STEPS, _UNTIL_SWEEP = range(2)


class ModelLearner(NamedTuple):
    """The learned model and the values planned with it."""

    values: PostDecision  # as published, its table holds Q(s, a), a row per state
    gamma: float
    alpha: Schedule
    last: Ints
    largest_gain: Floats
    moves: Floats  # times the level went from row to column
    arriving: Floats  # P transposed, from `moves`
    unknown: Floats  # learned violation cost per deployment and level
    clock: Ints  # [steps, steps until the next sweep]
    interval: Floats  # [steps between sweeps]
    every_step_until: int
    interval_growth: float
    longest_interval: float
    learns_costs: bool
    bounds_others: bool  # an observed cost bounds the states it is comparable with
    as_published: bool
    scratch: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeps:
    """When all states are backed up: at every step at first, then at growing intervals."""

    every_step_until: Annotated[int, Param("steps after which sweeps become rarer", at_least=0)] = 25
    interval_growth: Annotated[
        float, Param("factor by which the interval between sweeps grows", at_least=1)
    ] = 1.02
    longest_interval: Annotated[float, Param("longest interval between sweeps, in steps", at_least=1)] = (
        50_000.0
    )


SWEEPS = Sweeps()


@operator_policy("model-based", needs_model=True, has_bounds=True)
@dataclass(frozen=True, kw_only=True)
class ModelBased(CompiledPolicy[ModelLearner]):
    """Reinforcement learning that learns the model and plans with it."""

    problem: Problem
    gamma: Annotated[float, Param("discount factor for later costs", at_least=0, below=1)] = 0.99
    rates: StepSize = field(default_factory=StepSize)
    sweeps: Sweeps = SWEEPS
    published_updates: bool = False  # plan over Q(s, a), bound along levels only, and lose the level in that

    def __post_init__(self) -> None:
        actions = actions_of(self.deployments) if self.published_updates else 1
        need_enumeration(self.problem, "model-based", values_per_state=actions)

    def initial(self) -> ModelLearner:
        learner = model_learner(
            self.problem,
            gamma=self.gamma,
            alpha=self.rates.alpha(),
            sweeps=self.sweeps,
        )
        learner = learner._replace(bounds_others=True)
        return as_published(learner) if self.published_updates else learner

    def explain(self, memory: ModelLearner, seen: Seen) -> str:
        level = level_of(self.problem, seen.rate)
        _, least, stay = planned_action(memory, seen.deployment, level)
        return values_in_words(least, stay, seen.rate, level)


def model_learner(
    p: Problem, *, gamma: float, alpha: Schedule, sweeps: Sweeps, known_costs: Floats | None = None
) -> ModelLearner:
    """Knows nothing of the rates; learns violation costs state by state unless they are known."""
    costs = np.zeros((p.deployments.replicas.size, p.levels)) if known_costs is None else known_costs.copy()
    return ModelLearner(
        values=post_decision(p, writes=0),
        gamma=gamma,
        alpha=alpha,
        last=no_decision(),
        largest_gain=np.ones(1),
        moves=np.eye(p.levels),
        arriving=np.eye(p.levels),
        unknown=costs,
        clock=np.zeros(2, dtype=np.int64),
        interval=np.ones(1),
        every_step_until=sweeps.every_step_until,
        interval_growth=sweeps.interval_growth,
        longest_interval=sweeps.longest_interval,
        learns_costs=known_costs is None,
        bounds_others=False,
        as_published=False,
        scratch=np.empty((2, p.levels)),
    )


def as_published(learner: ModelLearner) -> ModelLearner:
    """The same with a table of Q(s, a)."""
    p = learner.values.problem
    states, actions = p.deployments.replicas.size * p.levels, actions_of(p.deployments)
    q = value_table(keys=states, width=actions, writes=0)
    return learner._replace(
        values=learner.values._replace(v=q),
        as_published=True,
        scratch=np.empty((p.deployments.replicas.size, p.levels)),
    )


@compiled
def learn_move(me: ModelLearner, then: int, now: int) -> None:
    """Count a transition of the level and renormalise its row."""
    me.moves[then, now] += 1.0
    total = 0.0
    for level in range(me.moves.shape[1]):
        total += me.moves[then, level]
    for level in range(me.moves.shape[1]):
        me.arriving[level, then] = me.moves[then, level] / total


@compiled
def learn_cost(me: ModelLearner, here: int, level: int, cost: float) -> int:
    """Blend in an observed violation cost (eq. 5) and bound every comparable state by it.

    Returns the level to go on with, which is another one only as published.
    """
    alpha = me.alpha.now[0]
    before = me.unknown[here, level]
    learned = (1.0 - alpha) * before + alpha * cost
    advance(me.alpha)
    if learned == before:
        return level
    me.unknown[here, level] = learned
    if not me.bounds_others:
        return level
    if me.as_published:
        return _bound_levels(me, here, level, learned, learned > before)
    space = me.values.problem.deployments
    for other in range(space.replicas.size):
        no_better = (
            space.replicas[other] <= space.replicas[here] and space.slowest[other] <= space.slowest[here]
        )
        no_worse = (
            space.replicas[other] >= space.replicas[here] and space.slowest[other] >= space.slowest[here]
        )
        if no_better:
            for higher in range(level, me.unknown.shape[1]):
                me.unknown[other, higher] = max(me.unknown[other, higher], learned)
        if no_worse:
            for lower in range(level + 1):
                me.unknown[other, lower] = min(me.unknown[other, lower], learned)
    return level


@compiled
def _bound_levels(me: ModelLearner, here: int, level: int, learned: float, increased: bool) -> int:
    """Raise higher levels of this deployment after an increase, lower lower ones after a decrease.

    The published loop counts in the current state itself: what follows takes the last level it
    visited for the current one. That it walks away from the level is our reading.
    """
    if increased:
        while level < me.unknown.shape[1] - 1:
            level += 1
            me.unknown[here, level] = max(me.unknown[here, level], learned)
    else:
        while level > 0:
            level -= 1
            me.unknown[here, level] = min(me.unknown[here, level], learned)
    return level


@compiled
def time_to_sweep(me: ModelLearner) -> bool:
    """At every step at first, then at growing intervals."""
    me.clock[_STEPS] += 1
    if me.clock[_STEPS] <= me.every_step_until:
        return True
    me.clock[_UNTIL_SWEEP] -= 1
    if me.clock[_UNTIL_SWEEP] > 0:
        return False
    me.interval[0] = min(me.interval[0] * me.interval_growth, me.longest_interval)
    me.clock[_UNTIL_SWEEP] = int(me.interval[0])
    return True


@compiled
def planned_action(me: ModelLearner, here: int, level: int) -> tuple[int, float, float]:
    """The first possible action of least value, that value, and the value of doing nothing."""
    if not me.as_published:
        return best_action(me.values, here, level)
    space = me.values.problem.deployments
    row = here * me.values.problem.levels + level
    stay = me.values.v.values[row, NOTHING]
    best, least = NOTHING, stay
    for action in range(1, actions_of(space)):
        if after(space, here, action) != NOWHERE and me.values.v.values[row, action] < least:
            best, least = action, me.values.v.values[row, action]
    return best, least, stay


@step_of(ModelLearner)
def model_based_step(me: ModelLearner, seen: Seen, rng: Generator) -> tuple[int, float]:
    p = me.values.problem
    here = seen.deployment
    level = level_of(p, seen.rate)
    carried_out = action_carried_out(me.last, here)
    if carried_out != UNKNOWN:
        learn_move(me, level_then(me.last), level)
        if me.learns_costs:
            level = learn_cost(me, here, level, unknown_cost(p, seen))
        if time_to_sweep(me):
            if me.as_published:
                sweep_actions(p, me.values.v, me.arriving, me.unknown, me.gamma, me.scratch)
            else:
                sweep(p, me.values.v, me.arriving, me.unknown, me.gamma, me.scratch)
    action, least, stay = planned_action(me, here, level)
    target = after(p.deployments, here, action)
    remember(me.last, here, level, action, target)
    return target, score(me.largest_gain, stay, least, least)
