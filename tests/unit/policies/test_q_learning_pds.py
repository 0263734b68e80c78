"""Q-learning over post-decision states: Russo 2023, eq. (9)-(12), slot by slot by hand.

One node type, two replicas at most, two levels of 100 tuples/s; the discount is 0.5 and the
step size 1, 1/2, 1/4, ... Costs: 0.5 late, 0.125 a replica, 0.25 a reconfiguration.
"""

import numpy as np
import pytest
from policy_cases import IN_TIME, LATE, SLO_S, at, mm1_time, node_types, play, problem_of, seen, space_of

from penstock.compiled import Floats
from penstock.domain.objective import Weights
from penstock.perf.deployments import NOTHING, adding, replicas_at
from penstock.perf.queueing import m_m_1
from penstock.policy.kernel import step
from penstock.policy.operator.q_learning import LearningRates
from penstock.policy.operator.q_learning_pds import PdsLearner, PdsLearning
from penstock.policy.rl import tables
from penstock.policy.rl.experience import remember
from penstock.policy.rl.post_decision import BelievedModel, estimated_cost, post_decision

HALVING = LearningRates(alpha_factor=0.5, alpha_every=1, alpha_floor=0.0)
WEIGHTS = Weights(performance=0.5, resources=0.25, reconfiguration=0.25)
TYPES = node_types()
LOW, HIGH = 50.0, 150.0


def pds_learning(
    *, most: int = 2, believed_service_s: float | None = None, as_published: bool = False
) -> PdsLearning:
    space = space_of(TYPES, most)
    believed = (
        None
        if believed_service_s is None
        else BelievedModel(deployments=space, queue=m_m_1(believed_service_s))
    )
    return PdsLearning(
        node_types=TYPES,
        deployments=space,
        problem=problem_of(space, levels=2, max_rate=200.0, weights=WEIGHTS),
        believed=believed,
        gamma=0.5,
        rates=HALVING,
        published_updates=as_published,
    )


def values(memory: PdsLearner) -> Floats:
    """V(replicas - 1, level)."""
    return memory.values.v.values.reshape(-1, 2)


def live(
    policy: PdsLearning, slots: list[tuple[float, float]], replicas: int = 1
) -> tuple[PdsLearner, list[int]]:
    """Obey the policy through (rate, response time) slots; its memory and the replicas it chose."""
    memory, here, chosen = policy.initial(), at(policy.deployments, replicas), []
    for rate, response_time_s in slots:
        here, _ = step(memory, seen(here, rate, response_time_s=response_time_s), np.random.default_rng(1))
        chosen.append(replicas_at(policy.deployments, here).total)
    return memory, chosen


SLOTS = [
    # Staying costs 0.125, adding 0.5: stay.
    (LOW, IN_TIME),
    # V(1, low) = 1 * (0.5 + 0.5 * 0.125)
    (HIGH, LATE),
    # V(1, high) = 1/2 * 0 + 1/2 * (0.5 + 0.5 * 0.125)
    (HIGH, LATE),
    # Staying is now worth 0.125 + V(1, low) = 0.6875, adding still 0.5: add.
    # V(1, high) = 3/4 * 0.28125 + 1/4 * (0.5 + 0.5 * 0.5)
    (LOW, LATE),
    # V(2, low) = 7/8 * V(2, low) + 1/8 * (0 + 0.5 * 0.25)
    (HIGH, IN_TIME),
]


def test_values_follow_equations_9_and_10() -> None:
    memory, chosen = live(pds_learning(), SLOTS)
    assert chosen == [1, 1, 1, 2, 2]
    assert values(memory).tolist() == [[0.5625, 0.3984375], [0.015625, 0.0]]
    assert memory.alpha.now[0] == 1 / 16


def test_as_published_blends_in_the_value_of_the_state_before_the_decision() -> None:
    paper, chosen = live(pds_learning(), SLOTS)
    published, also = live(pds_learning(as_published=True), SLOTS)
    assert chosen == also
    # Only the last slot follows a change: there 7/8 of V(1, low) stand for 7/8 of V(2, low).
    difference = values(published) - values(paper)
    assert difference.tolist() == [[0.0, 0.0], [7 / 8 * (0.5625 - 0.0), 0.0]]


def test_with_an_estimate_the_greedy_choice_follows_equation_11() -> None:
    # 10 ms a tuple: one replica at 150 t/s is expected to be late, two are not.
    _, chosen = live(pds_learning(believed_service_s=0.010), [(HIGH, IN_TIME)])
    assert chosen == [2]  # 0.125 + 0.5 to stay, 0.25 + 0.25 to add
    _, chosen = live(pds_learning(), [(HIGH, IN_TIME)])
    assert chosen == [1]


def test_only_the_error_of_the_estimate_is_learned_equation_12() -> None:
    # Slot 2 is late where the model expected no violation (two replicas, high): the error is 0.5.
    policy = pds_learning(believed_service_s=0.010)
    memory, chosen = live(policy, [(HIGH, IN_TIME), (LOW, LATE), (LOW, IN_TIME)])
    assert chosen == [2, 2, 2]
    high_after_two = 1.0 * ((0.5 - 0.0) + 0.5 * 0.25)
    low_after_two = 0.5 * ((0.0 - 0.0) + 0.5 * 0.25)
    assert values(memory).tolist() == [[0.0, 0.0], [low_after_two, high_after_two]]


def test_an_expected_violation_that_does_not_come_is_learned_as_a_gain() -> None:
    policy = pds_learning(most=1, believed_service_s=0.010)  # nothing to do but stay
    memory, _ = live(policy, [(HIGH, IN_TIME), (LOW, IN_TIME)])
    assert values(memory).tolist() == [[0.0, (0.0 - 0.5) + 0.5 * 0.25]]


def test_a_refused_request_is_learned_where_the_operator_stayed() -> None:
    policy = pds_learning()
    memory = policy.initial()
    space = policy.deployments
    remember(memory.last, at(space, 1), 0, adding(space, 0), at(space, 2))
    step(memory, seen(at(space, 1), HIGH, response_time_s=LATE), np.random.default_rng(1))
    assert values(memory).tolist() == [[0.5 + 0.5 * 0.125, 0.0], [0.0, 0.0]]


def test_nothing_is_learned_from_a_change_made_by_someone_else() -> None:
    policy = pds_learning(most=3)
    memory = policy.initial()
    space = policy.deployments
    remember(memory.last, at(space, 1), 0, NOTHING, at(space, 1))
    step(memory, seen(at(space, 3), HIGH, response_time_s=LATE), np.random.default_rng(1))
    assert not values(memory).any()
    assert memory.alpha.now[0] == 1.0


def test_ties_go_to_nothing_then_to_removing_then_to_the_first_type() -> None:
    twins = node_types((1.0, 1.0))
    space = space_of(twins, 4)
    free_changes = Weights(performance=0.5, resources=0.5, reconfiguration=0.0)
    policy = PdsLearning(
        node_types=twins, deployments=space, problem=problem_of(space, levels=2, weights=free_changes)
    )

    def choice(raised: dict[tuple[int, int], float]) -> tuple[int, ...]:
        memory = policy.initial()
        for counts, value in raised.items():
            memory.values.v.values[at(space, *counts) * 2 + 0, 0] = value
        target, _ = step(memory, seen(at(space, 1, 1)), np.random.default_rng(1))
        return replicas_at(space, target).counts

    one = 0.5 * 1 / 4  # cost of a replica
    assert choice({}) == (0, 1)  # removing either is as good: the first type goes
    assert choice({(0, 1): 9.0, (1, 0): 9.0, (1, 1): 9.0}) == (2, 1)  # adding either: the first comes
    assert choice({(0, 1): one, (1, 0): one}) == (1, 1)  # staying is as good as removing: stay
    assert choice({(0, 1): 9.0, (1, 0): 2 * one, (1, 1): 9.0}) == (1, 0)  # removing as good as adding


def test_an_estimate_is_a_violation_of_the_believed_model_at_the_middle_of_the_level() -> None:
    types = node_types((1.0, 0.5, 2.0))
    guesses = node_types((1.1, 0.45, 1.8))
    for packed in (False, True):
        space = space_of(types, 4, packed=packed)
        guess = space_of(guesses, 4, packed=packed)
        problem = problem_of(space, levels=5, max_rate=500.0)
        believed = post_decision(
            problem, writes=10, believed=BelievedModel(deployments=guess, queue=m_m_1(0.011))
        )
        listed = space_of(types, 4)
        outcomes = set()
        for row in range(listed.replicas.size):
            counts = replicas_at(listed, row).counts
            for level in range(5):
                late = mm1_time(guess, counts, 100.0 * level + 50.0, 0.011) > SLO_S
                assert estimated_cost(believed, at(space, *counts), level) == (0.6 if late else 0.0)
                outcomes.add(late)
        assert outcomes == {False, True}


RATES = np.abs(np.random.default_rng(5).normal(150, 80, 1000))


@pytest.mark.parametrize("estimates", [False, True])
def test_hashed_tables_and_packed_deployments_give_the_trajectory_of_dense_ones(
    estimates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    types = node_types((1.0, 0.5, 1.5))  # prices a float holds exactly: costs add up alike in any order

    def trajectory(*, packed: bool) -> list[tuple[int, ...]]:
        space = space_of(types, 4, packed=packed)
        policy = PdsLearning(
            node_types=types,
            deployments=space,
            problem=problem_of(space, levels=5, max_rate=400.0),
            believed=BelievedModel(deployments=space, queue=m_m_1(0.011)) if estimates else None,
            expected_steps=RATES.size,
        )
        return play(space, policy.initial(), RATES, at(space, 0, 1, 0), np.random.default_rng(1))

    dense = trajectory(packed=False)
    assert trajectory(packed=True) == dense
    monkeypatch.setattr(tables, "LARGEST_DENSE_BYTES", 0)
    assert trajectory(packed=False) == dense
    assert len(set(dense)) > 5
