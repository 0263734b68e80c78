"""Threshold policy: Cardellini 2018, sec. 5.1, and the node choices of Russo 2023, sec. 6.2.1."""

import numpy as np
import pytest
from policy_cases import node_types, observation, space_of

from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.operator.threshold import Threshold

MOST = 4


def threshold(
    *,
    choice: NodeChoice = NodeChoice.FIRST,
    types: int = 1,
    high: float = 0.7,
    beta: float = 0.75,
    worst_replica: bool = False,
) -> Threshold:
    # The first is neither the cheapest (last) nor the fastest (second).
    nodes = node_types((1.0, 4.0, 2.0)[:types], (2.0, 3.0, 1.0)[:types])
    return Threshold(
        node_types=nodes,
        deployments=space_of(nodes, MOST),
        node_choice=choice,
        threshold=high,
        beta=beta,
        worst_replica=worst_replica,
    )


def decision(policy: Threshold, *counts: int, utilisation: float) -> Decision:
    seen = observation(*counts, utilisation=utilisation)
    return policy.decide(policy.initial(), seen, np.random.default_rng(1))[0]


@pytest.mark.parametrize(
    ("utilisation", "score"),
    [(0.73, 0.1), (0.85, 0.5), (1.0, 1.0), (2.5, 1.0)],  # (U_r - U) / (1 - U), at most 1
)
def test_utilisation_above_the_threshold_asks_for_one_more_scored_by_the_excess(
    utilisation: float, score: float
) -> None:
    asked = decision(threshold(), 2, utilisation=utilisation)
    assert isinstance(asked, Scale)
    assert asked.target == Replicas((3,))
    assert asked.score == pytest.approx(score)


@pytest.mark.parametrize(
    ("replicas", "utilisation", "score"),
    # beta U = 0.525; survivors carry n/(n-1) of the load: score (0.525 - that) / 0.525
    [(3, 0.28, 1 - 0.42 / 0.525), (2, 0.105, 0.6), (4, 0.0, 1.0)],
)
def test_load_the_survivors_could_carry_asks_for_one_fewer_scored_by_the_slack(
    replicas: int, utilisation: float, score: float
) -> None:
    asked = decision(threshold(), replicas, utilisation=utilisation)
    assert isinstance(asked, Scale)
    assert asked.target == Replicas((replicas - 1,))
    assert asked.score == pytest.approx(score)


def test_two_replicas_at_a_third_of_the_load_stay_because_one_would_carry_too_much() -> None:
    # 0.3 is below beta U = 0.525, but one replica would run at 0.6.
    assert isinstance(decision(threshold(), 2, utilisation=0.3), Hold)


@pytest.mark.parametrize("utilisation", [0.5, 0.125])  # U itself; beta U = 0.25 once one is gone
def test_the_bounds_themselves_are_tolerated(utilisation: float) -> None:
    assert isinstance(decision(threshold(high=0.5, beta=0.5), 2, utilisation=utilisation), Hold)


def skewed(policy: Threshold, *loads: float) -> Decision:
    """What it makes of replicas of one type that are this busy, one by one."""
    seen = observation(len(loads), utilisation=max(loads), by_replica=loads)
    return policy.decide(policy.initial(), seen, np.random.default_rng(1))[0]


@pytest.mark.parametrize(
    ("high", "loads", "survivors"),
    [(0.95, (0.9, 0.1, 0.1), 1.1 / 2), (0.7, (0.1, 0.6, 0.1), 0.8 / 2), (0.7, (0.0, 0.2, 0.3, 0.7), 1.2 / 3)],
)
def test_what_the_survivors_would_carry_is_the_sum_of_all_replicas_spread_over_one_fewer(
    high: float, loads: tuple[float, ...], survivors: float
) -> None:
    """Cardellini 2018, sec. 5.1: scale in when sum_r U_r / (n - 1) < c U, scored (c U - that) / (c U)."""
    asked = skewed(threshold(high=high), *loads)
    assert isinstance(asked, Scale)
    assert asked.target == Replicas((len(loads) - 1,))
    assert asked.score == pytest.approx((0.75 * high - survivors) / (0.75 * high))
    assert f"utilisation {max(loads):.2f}, mean {sum(loads) / len(loads):.2f}" in asked.reason


@pytest.mark.parametrize(("high", "loads"), [(0.95, (0.9, 0.1, 0.1)), (0.7, (0.1, 0.6, 0.1))])
def test_as_published_the_busiest_replica_stands_for_all_of_them(
    high: float, loads: tuple[float, ...]
) -> None:
    """Three times .9 would be 1.35 each for two, three times .6 still .9."""
    held = skewed(threshold(high=high, worst_replica=True), *loads)
    assert isinstance(held, Hold)
    assert "mean" not in held.reason


@pytest.mark.parametrize("worst_replica", [False, True])
def test_one_replica_above_the_threshold_is_enough_to_ask_for_more(worst_replica: bool) -> None:
    """Cardellini 2018, sec. 5.1: scale out when U_r > U, scored (U_r - U) / (1 - U)."""
    asked = skewed(threshold(worst_replica=worst_replica), 0.9, 0.1, 0.1)
    assert isinstance(asked, Scale)
    assert asked.target == Replicas((4,))
    assert asked.score == pytest.approx(0.2 / 0.3)


def test_all_replicas_there_may_be_are_held_however_overloaded() -> None:
    assert isinstance(decision(threshold(), MOST, utilisation=3.0), Hold)


def test_the_last_replica_is_held_however_idle() -> None:
    assert isinstance(decision(threshold(), 1, utilisation=0.0), Hold)


@pytest.mark.parametrize(
    ("choice", "node_type"),
    [(NodeChoice.CHEAPEST, 2), (NodeChoice.FASTEST, 1), (NodeChoice.FIRST, 0)],
)
def test_each_node_choice_starts_adds_and_removes_its_own_type(choice: NodeChoice, node_type: int) -> None:
    policy = threshold(choice=choice, types=3)
    assert policy.starting_type() == node_type
    three = Replicas((1, 1, 1))
    added = decision(policy, *three.counts, utilisation=0.9)
    removed = decision(policy, *three.counts, utilisation=0.1)
    assert isinstance(added, Scale)
    assert added.target == three.changed(node_type, +1)
    assert isinstance(removed, Scale)
    assert removed.target == three.changed(node_type, -1)


def test_where_its_own_type_does_not_run_another_is_released() -> None:
    asked = decision(threshold(types=3), 0, 2, 0, utilisation=0.1)
    assert isinstance(asked, Scale)
    assert asked.target == Replicas((0, 1, 0))


@pytest.mark.parametrize(
    ("high", "beta", "message"),
    [(1.0, 0.75, "threshold=1"), (0.0, 0.75, "threshold=0"), (0.7, 1.0, "beta=1")],
)
def test_bounds_outside_zero_and_one_are_refused(high: float, beta: float, message: str) -> None:
    with pytest.raises(InputError, match=f"{message}: it must be above 0 and below 1"):
        threshold(high=high, beta=beta)
