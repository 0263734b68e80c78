"""Model-based reinforcement learning with full backups (Cardellini 2018, sec. 5.2.2, Alg. 2).

Learns how rates move between levels and what a violation costs where, and plans with
both. Adding replicas cannot hurt and more load cannot help, so every observation also
bounds the states it is comparable with.

With several node types "more replicas" is not an order: adding a slow node to fast ones
makes the slowest replica slower. One deployment is at least as good as another when it
has as many replicas and its slowest is as fast.
"""

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled
from penstock.perf.deployments import after
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.policy.operator.q_learning import StepSize
from penstock.policy.parameters import Param
from penstock.policy.registry import operator_policy
from penstock.policy.rl.backup import need_enumeration, sweep
from penstock.policy.rl.experience import (
    UNKNOWN,
    action_carried_out,
    level_then,
    no_decision,
    remember,
    score,
)
from penstock.policy.rl.post_decision import PostDecision, best_action, greedy_reason, post_decision
from penstock.policy.rl.problem import Problem, level_of, unknown_cost
from penstock.policy.rl.schedules import Schedule, advance

_STEPS, _UNTIL_SWEEP = range(2)


class ModelLearner(NamedTuple):
    """The learned model and the values planned with it."""

    values: PostDecision
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
    bounds_levels: bool  # an observed cost bounds other levels of its deployment
    bounds_deployments: bool  # and those of deployments it is comparable with
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
    published_updates: bool = False  # bound states along rate levels only

    def __post_init__(self) -> None:
        need_enumeration(self.problem, "model-based")

    def initial(self) -> ModelLearner:
        learner = model_learner(
            self.problem,
            gamma=self.gamma,
            alpha=self.rates.alpha(),
            sweeps=self.sweeps,
        )
        return learner._replace(bounds_levels=True, bounds_deployments=not self.published_updates)

    def explain(self, memory: ModelLearner, seen: Seen) -> str:
        return greedy_reason(memory.values, seen.deployment, seen.rate, level_of(self.problem, seen.rate))


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
        bounds_levels=False,
        bounds_deployments=False,
        scratch=np.empty((2, p.levels)),
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
def learn_cost(me: ModelLearner, here: int, level: int, cost: float) -> None:
    """Blend in an observed violation cost (eq. 5) and bound every comparable state by it."""
    alpha = me.alpha.now[0]
    before = me.unknown[here, level]
    learned = (1.0 - alpha) * before + alpha * cost
    advance(me.alpha)
    if learned == before:
        return
    me.unknown[here, level] = learned
    if not me.bounds_levels:
        return
    space = me.values.problem.deployments
    first, end = (0, space.replicas.size) if me.bounds_deployments else (here, here + 1)
    for other in range(first, end):
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


@step_of(ModelLearner)
def model_based_step(me: ModelLearner, seen: Seen, rng: Generator) -> tuple[int, float]:
    p = me.values.problem
    here = seen.deployment
    level = level_of(p, seen.rate)
    carried_out = action_carried_out(me.last, here)
    if carried_out != UNKNOWN:
        learn_move(me, level_then(me.last), level)
        if me.learns_costs:
            learn_cost(me, here, level, unknown_cost(p, seen))
        if time_to_sweep(me):
            sweep(p, me.values.v, me.arriving, me.unknown, me.gamma, me.scratch)
    action, least, stay = best_action(me.values, here, level)
    target = after(p.deployments, here, action)
    remember(me.last, here, level, action, target)
    return target, score(me.largest_gain, stay, least, least)
