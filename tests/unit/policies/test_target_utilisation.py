"""The decentralised agents of Russo 2018: a violation is a utilisation above the target (eq. 2)."""

from math import inf

import numpy as np
import pytest
from policy_cases import at, node_types, seen, space_of

from penstock.domain.errors import InputError
from penstock.domain.objective import Weights
from penstock.perf.queueing import m_d_1
from penstock.policy.kernel import step
from penstock.policy.operator.target_utilisation import TargetUtilisation
from penstock.policy.operator.value_iteration import violation_costs
from penstock.policy.rl.problem import Problem, operator_problem, unknown_cost

TYPES = node_types()
SPACE = space_of(TYPES, 3)
RNG = np.random.default_rng(1)  # never drawn from: agents are greedy


def problem(target: float, levels: int = 3) -> Problem:
    return operator_problem(
        SPACE,
        levels=levels,
        max_rate=300.0,
        max_response_time_s=inf,
        weights=Weights(performance=0.4, resources=0.2, reconfiguration=0.4),
        max_utilisation=target,
    )


def agent(target: float) -> TargetUtilisation:
    return TargetUtilisation(node_types=TYPES, deployments=SPACE, problem=problem(inf), target=target)


@pytest.mark.parametrize(("utilisation", "cost"), [(0.7, 0.0), (0.7000001, 0.4), (1.3, 0.4)])
def test_only_a_utilisation_above_the_target_is_a_violation(utilisation: float, cost: float) -> None:
    late = seen(0, response_time_s=inf, utilisation=utilisation)
    assert unknown_cost(problem(0.7), late) == cost


def test_without_a_target_no_utilisation_is_a_violation() -> None:
    assert unknown_cost(problem(inf), seen(0, utilisation=5.0)) == 0.0


def test_a_known_model_expects_the_same_violations() -> None:
    # 100 tuples/s a replica; levels at 50, 150 and 250: 1 replica is busy .5, 1.5, 2.5.
    costs = violation_costs(problem(0.7), m_d_1(0.01))
    assert costs.tolist() == [[0.0, 0.4, 0.4], [0.0, 0.4, 0.4], [0.0, 0.0, 0.4]]


def test_violation_costs_are_blended_by_equation_6_where_they_were_seen_and_nowhere_else() -> None:
    policy = agent(0.7)
    memory = policy.initial()
    learned = []
    for utilisation in (0.9, 0.9, 0.9, 0.5):
        here = at(SPACE, 2)
        memory.last[:] = [here, 1, 0, here]  # as if it had decided to stay
        step(memory, seen(here, 150.0, utilisation=utilisation), RNG)
        learned.append(float(memory.unknown[here, 1]))
    expected, estimate = [], 0.0
    for cost in (0.4, 0.4, 0.4, 0.0):
        estimate = 0.9 * estimate + 0.1 * cost
        expected.append(estimate)
    assert learned == pytest.approx(expected)
    assert np.count_nonzero(memory.unknown) == 1


def test_an_agent_learns_to_stay_below_its_target() -> None:
    policy = agent(0.7)
    memory = policy.initial()
    here = 0
    busy = []
    for _ in range(3000):
        utilisation = 150.0 / (here + 1) / 100.0
        busy.append(utilisation)
        here, _ = step(memory, seen(here, 150.0, response_time_s=inf, utilisation=utilisation), RNG)
    assert set(busy[-500:]) == {0.5}  # three replicas; two would be busy .75


@pytest.mark.parametrize("target", [inf, 0.0, 1.0])
def test_an_agent_without_a_target_that_is_a_utilisation_is_refused(target: float) -> None:
    with pytest.raises(InputError, match=f"target={target:g}: it must be .*above 0 and below 1"):
        agent(target)


def test_a_target_must_be_positive() -> None:
    with pytest.raises(InputError, match=r"max_utilisation=0\.0; it must be positive"):
        problem(0.0)
