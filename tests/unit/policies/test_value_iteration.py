"""Value iteration against policy iteration with linear solves, an algorithm of its own."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from policy_cases import SLO_S, at, mm1_time, node_types, problem_of, seen, space_of

from penstock.compiled import Floats
from penstock.domain.errors import InputError
from penstock.perf.deployments import replicas_at
from penstock.perf.queueing import m_m_1
from penstock.policy.kernel import copied, step
from penstock.policy.operator.value_iteration import ValueIteration, ValuePlan
from penstock.testing.operator_policy import same

LEVELS = 3
GAMMA = 0.95
SERVICE_S = 0.010  # 100 tuples/s a replica; levels stand for 50, 150 and 250
CHAIN = np.array([[0.7, 0.3, 0.0], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]])


def training(slots: int = 400) -> Floats:
    """Rates that move between levels by the chain above."""
    rng, level, rates = np.random.default_rng(6), 0, []
    for _ in range(slots):
        rates.append(100.0 * level + rng.uniform(0, 100))
        level = int(rng.choice(LEVELS, p=CHAIN[level]))
    return np.array(rates)


def planner(
    speedups: tuple[float, ...], most: int, rates: Floats, tolerance: float = 1e-10
) -> ValueIteration:
    types = node_types(speedups)
    space = space_of(types, most)
    return ValueIteration(
        node_types=types,
        deployments=space,
        problem=problem_of(space, levels=LEVELS),
        queue=m_m_1(SERVICE_S),
        training=rates,
        gamma=GAMMA,
        tolerance=tolerance,
    )


Counts = tuple[int, ...]


@dataclass(frozen=True)
class Solved:
    """Q*(s, a) of Russo 2023, eq. (4), states and actions as plain counts."""

    q: dict[tuple[Counts, int], dict[Counts, float]]  # (deployment, level) -> where to go -> cost


def policy_iteration(speedups: tuple[float, ...], most: int, rates: Floats) -> Solved:
    """Howard's algorithm: evaluate by solving (I - gamma P) v = c, improve, until nothing improves."""
    types = node_types(speedups)
    space = space_of(types, most)
    moves = np.zeros((LEVELS, LEVELS))
    levels = [min(int(rate // 100), LEVELS - 1) for rate in rates]
    for then, now in pairwise(levels):
        moves[then, now] += 1
    probability = moves / moves.sum(axis=1, keepdims=True)
    deployments = [replicas_at(space, row).counts for row in range(space.replicas.size)]
    states = [(counts, level) for counts in deployments for level in range(LEVELS)]
    index = {state: position for position, state in enumerate(states)}

    def neighbours(counts: Counts) -> list[Counts]:
        return [d for d in deployments if sum(abs(a - b) for a, b in zip(counts, d, strict=True)) <= 1]

    def cost_and_row(counts: Counts, level: int, target: Counts) -> tuple[float, Floats]:
        price = sum(n * s for n, s in zip(target, speedups, strict=True)) / (most * max(speedups))
        cost = 0.2 * price + 0.2 * (target != counts)
        row = np.zeros(len(states))
        for following in range(LEVELS):
            p = probability[level, following]
            late = mm1_time(space, target, 100.0 * following + 50.0, SERVICE_S) > SLO_S
            cost += p * 0.6 * late
            row[index[target, following]] = p
        return cost, row

    policy = {state: state[0] for state in states}
    while True:
        rows = [cost_and_row(counts, level, policy[counts, level]) for counts, level in states]
        transition = np.array([row for _, row in rows])
        v = np.linalg.solve(np.eye(len(states)) - GAMMA * transition, np.array([cost for cost, _ in rows]))
        q: dict[tuple[Counts, int], dict[Counts, float]] = {}
        for counts, level in states:
            q[counts, level] = {}
            for target in neighbours(counts):
                cost, row = cost_and_row(counts, level, target)
                q[counts, level][target] = float(cost + GAMMA * row @ v)
        better = {
            state: min(options.items(), key=lambda option: option[1])[0]
            for state, options in q.items()
            if min(options.values()) < options[policy[state]] - 1e-12
        }
        if not better:
            return Solved(q)
        policy.update(better)


@pytest.mark.parametrize(("speedups", "most"), [((1.0,), 3), ((1.0, 2.0), 2), ((0.5, 1.0, 4.0), 2)])
def test_values_and_actions_are_those_of_an_exact_solution(speedups: tuple[float, ...], most: int) -> None:
    rates = training()
    solved = policy_iteration(speedups, most, rates)
    policy = planner(speedups, most, rates)
    plan = policy.initial()
    space = policy.deployments
    v = plan.values.v.values.reshape(-1, LEVELS)
    targets = set()
    for (counts, level), options in solved.q.items():
        for target, expected in options.items():
            price = float(np.dot(target, speedups)) / (most * max(speedups))
            known = 0.2 * price + 0.2 * (target != counts)
            assert known + v[at(space, *target), level] == pytest.approx(expected, abs=1e-8)
        chosen, _ = step(plan, seen(at(space, *counts), 100.0 * level + 50), np.random.default_rng(1))
        assert options[replicas_at(space, chosen).counts] == pytest.approx(min(options.values()), abs=1e-8)
        targets.add(replicas_at(space, chosen).counts == counts)
    assert targets == {False, True}, "a plan that never moves, or never rests, proves little"


def test_a_level_that_was_never_left_is_worth_nothing() -> None:
    plan = planner((1.0,), 3, np.array([50.0, 150.0, 50.0, 150.0, 250.0])).initial()
    v = plan.values.v.values.reshape(-1, LEVELS)
    assert v[:, 2].tolist() == [0.0] * 3
    assert (v[:, :2] > 0).all()


def test_a_looser_tolerance_stops_earlier_within_its_error_bound() -> None:
    rates = training()
    loose, exact = (planner((1.0,), 3, rates, tolerance).initial() for tolerance in (1e-2, 1e-12))
    assert loose.sweeps < exact.sweeps
    gap = np.abs(loose.values.v.values - exact.values.v.values).max()
    assert gap <= 1e-2 * GAMMA / (1 - GAMMA)


def test_a_plan_does_not_change_with_what_is_seen() -> None:
    policy = planner((1.0,), 3, training())
    plan = policy.initial()
    before: ValuePlan = copied(plan)
    for rate in training(50):
        step(
            plan, seen(at(policy.deployments, 2), float(rate), response_time_s=0.5), np.random.default_rng(1)
        )
    assert same(plan._replace(largest_gain=before.largest_gain), before)


def test_too_many_deployments_to_list_are_refused_by_name() -> None:
    types = node_types((1.0, 2.0))
    space = space_of(types, 3, packed=True)
    with pytest.raises(
        InputError, match=r"policy 'vi': 2 node types, 3 replicas and 3 levels have too many states"
    ):
        ValueIteration(
            node_types=types,
            deployments=space,
            problem=problem_of(space),
            queue=m_m_1(SERVICE_S),
            training=training(),
        )
