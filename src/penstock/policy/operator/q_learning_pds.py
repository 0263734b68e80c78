"""Q-learning over post-decision states: QL+PDS and QL+PDS+ (Russo 2023, sec. 4.3, eq. 9-12).

What an action does is known; only what the next interval brings is learned, as one value
per post-decision state (the deployment after the action, the rate level before it
changes). QL+PDS+ also estimates the violation cost from an approximate model and learns
the error of that estimate.
"""

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints
from penstock.perf.deployments import after
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.policy.operator.q_learning import StepSize
from penstock.policy.parameters import Param
from penstock.policy.registry import operator_policy
from penstock.policy.rl.experience import (
    UNKNOWN,
    action_carried_out,
    deployment_then,
    level_then,
    no_decision,
    remember,
    score,
)
from penstock.policy.rl.post_decision import (
    BelievedModel,
    PostDecision,
    best_action,
    estimated_cost,
    greedy_reason,
    post_decision,
)
from penstock.policy.rl.problem import Problem, level_of, unknown_cost
from penstock.policy.rl.schedules import Schedule, advance
from penstock.policy.rl.tables import row_to_read, row_to_write, value_at, with_room


class PdsLearner(NamedTuple):
    """V(s~), one value per post-decision state."""

    values: PostDecision
    gamma: float
    alpha: Schedule
    last: Ints
    largest_gain: Floats
    as_published: bool


@operator_policy("ql-pds-plus", chance=True, needs_model=True, has_bounds=True)
@operator_policy({"ql-pds": {"believed": None}}, needs_model=True, has_bounds=True)
@dataclass(frozen=True, kw_only=True)
class PdsLearning(CompiledPolicy[PdsLearner]):
    """Q-learning with post-decision states; `ql-pds-plus` also uses an approximate model."""

    problem: Problem
    believed: BelievedModel | None = None  # given: QL+PDS+
    gamma: Annotated[float, Param("discount factor for later costs", at_least=0, below=1)] = 0.99
    rates: StepSize = field(default_factory=StepSize)
    published_updates: bool = False  # blend in V of the state before the decision, as the published code does
    expected_steps: int = 100_000  # sizes a hashed table; it grows when live

    def initial(self) -> PdsLearner:
        return PdsLearner(
            values=post_decision(self.problem, writes=self.expected_steps, believed=self.believed),
            gamma=self.gamma,
            alpha=self.rates.alpha(),
            last=no_decision(),
            largest_gain=np.ones(1),
            as_published=self.published_updates,
        )

    def prepared(self, memory: PdsLearner) -> PdsLearner:
        v = with_room(memory.values.v)
        return memory if v is memory.values.v else memory._replace(values=memory.values._replace(v=v))

    def explain(self, memory: PdsLearner, seen: Seen) -> str:
        level = level_of(self.problem, seen.rate)
        return greedy_reason(memory.values, seen.deployment, seen.rate, level)


@step_of(PdsLearner)
def pds_step(me: PdsLearner, seen: Seen, rng: Generator) -> tuple[int, float]:
    values = me.values
    p = values.problem
    here = seen.deployment
    level = level_of(p, seen.rate)
    action, least, stay = best_action(values, here, level)

    carried_out = action_carried_out(me.last, here)
    if carried_out != UNKNOWN:
        then = level_then(me.last)
        row = row_to_write(values.v, here * p.levels + then)
        before = values.v.values[row, 0]
        if me.as_published:
            row_before = row_to_read(values.v, deployment_then(me.last) * p.levels + then)
            before = value_at(values.v, row_before, 0)
        alpha = me.alpha.now[0]
        surprise = unknown_cost(p, seen) - estimated_cost(values, here, then)
        values.v.values[row, 0] = (1.0 - alpha) * before + alpha * (
            surprise + me.gamma * least
        )  # eq. (10), (12)
        advance(me.alpha)
        if then == level:
            action, least, stay = best_action(values, here, level)

    target = after(p.deployments, here, action)
    remember(me.last, here, level, action, target)
    return target, score(me.largest_gain, stay, least, least)
