"""Value iteration with a known model: the optimal policy off-line, the "DP" curve of Russo 2023's figures.

Rates move between levels as they did in a training trace; the operator's response times
are known. It follows the plan and never learns.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, compiled, compiled_allocating
from penstock.perf.deployments import Deployments, after
from penstock.perf.queueing import QueueModel
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.policy.parameters import Param
from penstock.policy.registry import operator_policy
from penstock.policy.rl.backup import need_enumeration, sweep, transitions
from penstock.policy.rl.experience import score
from penstock.policy.rl.post_decision import (
    PostDecision,
    best_action,
    expected_violation,
    greedy_reason,
    post_decision,
)
from penstock.policy.rl.problem import Problem, level_of, levels_of
from penstock.policy.rl.tables import ValueTable


class ValuePlan(NamedTuple):
    """The values of all post-decision states, and how many sweeps it took to find them."""

    values: PostDecision
    largest_gain: Floats
    sweeps: int


@operator_policy("vi", needs_model=True, has_bounds=True, anticipates=True)
@dataclass(frozen=True, kw_only=True)
class ValueIteration(CompiledPolicy[ValuePlan]):
    """Value iteration: the optimum for a known model, planned once and followed."""

    problem: Problem
    queue: QueueModel
    training: Floats  # rates whose level transitions are taken as the model
    gamma: Annotated[float, Param("discount factor for later costs", at_least=0, below=1)] = 0.99
    tolerance: Annotated[float, Param("planning ends when no value changes by more than this", above=0)] = (
        1e-4
    )

    def __post_init__(self) -> None:
        need_enumeration(self.problem, "vi")

    def initial(self) -> ValuePlan:
        p = self.problem
        return planned(
            p,
            transitions(levels_of(p, self.training), p.levels),
            violation_costs(p, self.queue),
            gamma=self.gamma,
            tolerance=self.tolerance,
        )

    def informed(self, memory: ValuePlan, before: Deployments, after: Deployments) -> ValuePlan:
        return memory  # planned off-line, with the prices of that day

    def explain(self, memory: ValuePlan, seen: Seen) -> str:
        return greedy_reason(memory.values, seen.deployment, seen.rate, level_of(self.problem, seen.rate))


def planned(
    problem: Problem, known_transitions: Floats, unknown: Floats, *, gamma: float, tolerance: float
) -> ValuePlan:
    """The plan for known transitions of the level and known violation costs of (deployment, level)."""
    values = post_decision(problem, writes=0)
    scratch = np.empty((2, problem.levels))
    sweeps = iterate(problem, values.v, known_transitions.T.copy(), unknown, gamma, tolerance, scratch)
    return ValuePlan(values, np.ones(1), int(sweeps))


@compiled_allocating
def violation_costs(problem: Problem, queue: QueueModel) -> Floats:
    """The violation cost of every deployment at every level, by a known model."""
    costs = np.zeros((problem.deployments.replicas.size, problem.levels))
    for deployment in range(costs.shape[0]):
        for level in range(problem.levels):
            if expected_violation(problem, problem.deployments, queue, deployment, level):
                costs[deployment, level] = problem.performance
    return costs


@compiled
def iterate(
    problem: Problem,
    v: ValueTable,
    arriving: Floats,
    unknown: Floats,
    gamma: float,
    tolerance: float,
    scratch: Floats,
) -> int:
    """Sweep until nothing changes by more than the tolerance; returns the number of sweeps."""
    sweeps = 1
    while sweep(problem, v, arriving, unknown, gamma, scratch) > tolerance:
        sweeps += 1
    return sweeps


@step_of(ValuePlan)
def follow_plan(me: ValuePlan, seen: Seen, rng: Generator) -> tuple[int, float]:
    problem = me.values.problem
    action, least, stay = best_action(me.values, seen.deployment, level_of(problem, seen.rate))
    return after(problem.deployments, seen.deployment, action), score(me.largest_gain, stay, least, least)
