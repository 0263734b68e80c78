"""What learners remember: tables, features, models; each against a plain model of it."""

from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Weights
from penstock.perf.deployments import Deployments, actions_of, deployments, handle_of, replicas_at, with_types
from penstock.perf.queueing import m_m_1
from penstock.policy.operator.model_based import ModelBased, learn_cost
from penstock.policy.rl.post_decision import BelievedModel, estimated_cost, post_decision
from penstock.policy.rl.problem import Problem, operator_problem
from penstock.policy.rl.tables import row_to_read, row_to_write, value_at, value_table
from penstock.policy.rl.tile_coding import active, estimate, nudge, tiles

LEVELS = 4


def space_of(speedups: tuple[float, ...], most: int, *, packed: bool = False) -> Deployments:
    types = [NodeType(name=f"t{i}", speedup=speedup, price=1.0) for i, speedup in enumerate(speedups)]
    return deployments(types, most, enumerate_up_to=0) if packed else deployments(types, most)


def problem_of(space: Deployments) -> Problem:
    return operator_problem(space, levels=LEVELS, max_rate=400.0, max_response_time_s=0.05, weights=Weights())


def handles(space: Deployments) -> dict[tuple[int, ...], int]:
    return {
        counts: handle_of(space, Replicas(counts))
        for counts in product(range(space.max_replicas + 1), repeat=space.speedup.size)
        if 1 <= sum(counts) <= space.max_replicas
    }


# Neighbouring keys, as the levels of one deployment are, and keys from anywhere.
keys = st.one_of(st.integers(0, 60), st.integers(2**40, 2**40 + 60), st.integers(0, 2**62))


@settings(deadline=None)
@given(st.lists(st.tuples(keys, st.floats(-10, 10)), max_size=300), st.lists(keys, max_size=20))
def test_a_hashed_table_is_a_dictionary_whose_default_is_0(
    writes: list[tuple[int, float]], others: list[int]
) -> None:
    table = value_table(keys=2**62, width=2, writes=300)
    expected: dict[int, float] = defaultdict(float)
    for key, value in writes:
        table.values[row_to_write(table, key), 1] = value
        expected[key] = value
    assert table.used[0] == len(expected)
    for key in [*expected, *others]:
        assert value_at(table, row_to_read(table, key), 1) == expected.get(key, 0.0)


speeds = st.lists(st.sampled_from((0.5, 1.0, 1.5, 4.0)), min_size=1, max_size=3).map(tuple)


@dataclass(frozen=True)
class Observed:
    deployment: int
    level: int
    late: bool


observations = st.lists(
    st.builds(Observed, st.integers(0, 10**6), st.integers(0, LEVELS - 1), st.booleans()), max_size=40
)


@settings(deadline=None, max_examples=60)
@given(speeds, st.integers(1, 4), observations)
def test_a_learned_violation_cost_is_never_higher_where_there_is_more_capacity_or_less_load(
    speedups: tuple[float, ...], most: int, seen: list[Observed]
) -> None:
    """Cardellini 2018, sec. 5.2.2: the constraints enforced after eq. (5), with as fast a slowest node."""
    space = space_of(speedups, most)
    types = tuple(NodeType(name=f"t{i}", speedup=s, price=1.0) for i, s in enumerate(speedups))
    memory = ModelBased(node_types=types, deployments=space, problem=problem_of(space)).initial()
    memory.alpha.now[0] = 0.3
    for one in seen:
        learn_cost(memory, one.deployment % space.replicas.size, one.level, 0.6 if one.late else 0.0)
    costs = memory.unknown
    assert (np.diff(costs, axis=1) >= 0).all(), "more load cannot help"
    strength = [
        (sum(counts), min(s for s, n in zip(speedups, counts, strict=True) if n))
        for counts in (replicas_at(space, row).counts for row in range(space.replicas.size))
    ]
    for a, b in product(range(len(strength)), repeat=2):
        if strength[a][0] >= strength[b][0] and strength[a][1] >= strength[b][1]:
            assert (costs[a] <= costs[b]).all(), f"{strength[a]} is expected to be worse than {strength[b]}"


@settings(deadline=None, max_examples=60)
@given(speeds, st.integers(1, 4), st.floats(0.8, 1.2), st.floats(0.001, 0.06))
def test_estimates_are_the_same_for_listed_and_for_packed_deployments(
    speedups: tuple[float, ...], most: int, error: float, service_time_s: float
) -> None:
    estimates = []
    for packed in (False, True):
        space = space_of(speedups, most, packed=packed)
        guess = with_types(space, speedup=error * space.speedup, price=space.price)
        believed = BelievedModel(deployments=guess, queue=m_m_1(service_time_s))
        me = post_decision(problem_of(space), writes=1, believed=believed)
        estimates.append(
            {
                (counts, level): estimated_cost(me, handle, level)
                for counts, handle in handles(space).items()
                for level in range(LEVELS)
            }
        )
    assert estimates[0] == estimates[1]
    for (counts, level), cost in estimates[0].items():
        service = service_time_s / min(error * s for s, n in zip(speedups, counts, strict=True) if n)
        busy = (100.0 * level + 50) / sum(counts) * service
        time = service / (1 - busy) if busy < 1 else inf
        if abs(time - 0.05) > 1e-9:
            assert cost == (0.6 if time > 0.05 else 0.0)


nudges = st.lists(
    st.tuples(
        st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, LEVELS - 1), st.floats(-1, 1).map(float)
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=60)
@given(speeds, st.integers(1, 4), nudges)
def test_an_estimate_is_the_sum_of_all_nudges_times_the_tiles_shared_with_them(
    speedups: tuple[float, ...], most: int, made: list[tuple[int, int, int, float]]
) -> None:
    space = space_of(speedups, most)
    me = tiles(problem_of(space))
    size, actions, types = space.replicas.size, actions_of(space), len(speedups)

    def features(action: int, deployment: int, level: int) -> set[tuple[str, tuple[int, ...]]]:
        x, y, shifted_y, z, stripe = active(me, deployment, level)
        bias = "none" if action == 0 else "removing" if action <= types else "adding"
        found = {("grid", (x, y, z)), ("shifted", (x, shifted_y, z)), ("stripe", (stripe,))}
        return found | ({(bias, ())} if action else set())

    where = [(action % actions, deployment % size, level) for action, deployment, level, _ in made]
    for (action, deployment, level), (_, _, _, amount) in zip(where, made, strict=True):
        nudge(me, action, deployment, level, amount)
    for action, deployment, level in product(range(actions), range(size), range(LEVELS)):
        shared = [len(features(action, deployment, level) & features(*place)) for place in where]
        expected = sum(count * amount for count, (_, _, _, amount) in zip(shared, made, strict=True))
        assert estimate(me, action, deployment, level) == pytest.approx(expected, abs=1e-12)
