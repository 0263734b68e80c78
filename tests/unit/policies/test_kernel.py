"""The class around a compiled step: separate memories, new prices of nodes, blindness."""

from math import inf, nan
from typing import NamedTuple

import numpy as np
import pytest
from policy_cases import IN_TIME, at, node_types, observation, problem_of, seen, space_of

from penstock.compiled import Floats, frozen_floats
from penstock.domain.decision import Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.perf.deployments import Deployments, with_types
from penstock.policy.kernel import copied, mean_utilisation, step, with_other_nodes
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.operator.q_learning_pds import PdsLearner, PdsLearning
from penstock.policy.operator.threshold import Threshold

TYPES = node_types((1.0, 2.0), (2.0, 1.0))
SPACE = space_of(TYPES, 3)


class Inner(NamedTuple):
    written: Floats
    read: Floats


class Outer(NamedTuple):
    inner: Inner
    space: Deployments
    number: int


def outer() -> Outer:
    return Outer(Inner(np.arange(3.0), frozen_floats([1.0, 2.0])), SPACE, 7)


def test_a_copy_shares_what_is_read_only_and_owns_what_can_be_written() -> None:
    original = outer()
    copy = copied(original)
    assert isinstance(copy.inner, Inner)
    assert copy.number == 7
    assert copy.inner.read is original.inner.read
    assert copy.space.cost is SPACE.cost
    copy.inner.written[0] = 99.0
    assert original.inner.written.tolist() == [0.0, 1.0, 2.0]
    assert copy.inner.written.tolist() == [99.0, 1.0, 2.0]


def dearer() -> Deployments:
    return with_types(SPACE, speedup=SPACE.speedup, price=10.0 * SPACE.price)


def test_news_of_the_nodes_replaces_the_deployments_and_nothing_else() -> None:
    original, news = outer(), dearer()
    informed = with_other_nodes(original, SPACE, news)
    assert informed.space is news
    assert informed.inner.written is original.inner.written
    assert informed.inner.read is original.inner.read
    assert informed.number == 7
    assert original.space is SPACE


def test_other_deployments_a_memory_holds_are_not_news() -> None:
    believed = with_types(SPACE, speedup=1.1 * SPACE.speedup, price=SPACE.price)
    informed = with_other_nodes(outer()._replace(space=believed), SPACE, dearer())
    assert informed.space.price is believed.price
    assert informed.space.speedup is believed.speedup


def learner() -> PdsLearning:
    return PdsLearning(node_types=TYPES, deployments=SPACE, problem=problem_of(SPACE))


def prices(memory: PdsLearner) -> list[float]:
    return [float(price) for price in memory.values.problem.deployments.price]


def test_a_learner_hears_of_new_prices() -> None:
    policy = learner()
    assert prices(policy.informed(policy.initial(), SPACE, dearer())) == [20.0, 10.0]


def test_a_learner_hears_of_new_prices_a_second_time() -> None:
    policy = learner()
    doubled = with_types(SPACE, speedup=SPACE.speedup, price=2.0 * SPACE.price)
    once = policy.informed(policy.initial(), SPACE, doubled)
    assert prices(policy.informed(once, doubled, dearer())) == [20.0, 10.0]


def test_a_learner_that_has_decided_still_hears_of_new_prices() -> None:
    policy = learner()
    _, memory = policy.decide(policy.initial(), observation(1, 0), np.random.default_rng(1))
    assert prices(policy.informed(memory, SPACE, dearer())) == [20.0, 10.0]


def threshold() -> Threshold:
    return Threshold(node_types=TYPES, deployments=SPACE, node_choice=NodeChoice.FIRST)


def test_what_was_not_measured_is_named_and_nothing_is_forgotten_or_drawn() -> None:
    policy = learner()
    memory = policy.initial()
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    decision, after = policy.decide(memory, observation(1, 0, rate=None, utilisation=None), rng)
    assert decision == Hold("arrival rate, utilisation not measured")
    assert after is memory
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("rate", [nan, inf, -1.0])
def test_what_is_no_rate_was_not_measured(rate: float) -> None:
    policy = learner()
    decision, _ = policy.decide(policy.initial(), observation(1, 0, rate=rate), np.random.default_rng(1))
    assert decision == Hold("arrival rate not measured")


def test_an_infinite_response_time_is_a_measurement_and_no_number_is_not() -> None:
    policy, rng = learner(), np.random.default_rng(1)
    saturated = observation(1, 0, response_time_s=inf)
    assert "not measured" not in policy.decide(policy.initial(), saturated, rng)[0].reason
    nothing = observation(1, 0, response_time_s=nan)
    assert policy.decide(policy.initial(), nothing, rng)[0] == Hold("response time not measured")


def test_more_replicas_than_it_knows_about_are_left_alone() -> None:
    policy = learner()
    crowd = observation(SPACE.max_replicas, 1)
    decision, _ = policy.decide(policy.initial(), crowd, np.random.default_rng(1))
    assert isinstance(decision, Hold)
    assert "more than" in decision.reason


def test_zero_is_a_measurement() -> None:
    policy = threshold()
    idle = observation(2, 0, rate=0.0, response_time_s=0.0, utilisation=0.0)
    decision, _ = policy.decide(policy.initial(), idle, np.random.default_rng(1))
    assert isinstance(decision, Scale)
    assert decision.target == Replicas((1, 0))


@pytest.mark.parametrize("loads", [None, (), (0.6, nan, 0.1), (0.6, -1.0, 0.1), (0.6, inf, 0.1)])
def test_where_not_every_replica_was_measured_the_busiest_stands_for_all(
    loads: tuple[float, ...] | None,
) -> None:
    assert mean_utilisation(observation(3, 0, utilisation=0.6, by_replica=loads), 0.6) == 0.6


def test_the_mean_over_replicas_is_theirs_to_the_last_digit_where_all_are_alike() -> None:
    assert mean_utilisation(observation(3, 0, by_replica=(0.9, 0.1, 0.2)), 0.9) == pytest.approx(0.4)
    assert sum([0.1] * 3) / 3 != 0.1
    assert mean_utilisation(observation(3, 0, by_replica=(0.1, 0.1, 0.1)), 0.1) == 0.1


def test_a_live_decision_is_the_compiled_step() -> None:
    policy = learner()
    memory = policy.initial()
    memory.values.v.values[at(SPACE, 1, 0) * 3, 0] = 5.0
    decision, _ = policy.decide(memory, observation(1, 0), np.random.default_rng(1))
    target, score = step(memory, seen(at(SPACE, 1, 0), response_time_s=IN_TIME), np.random.default_rng(1))
    assert isinstance(decision, Scale)
    assert at(SPACE, *decision.target.counts) == target
    assert decision.score == score
    # Staying: 0.2 * 2 / 6 + 5; adding the cheap type: 0.2 + 0.2 * 3 / 6.
    assert decision.reason == "+1 t1 expected cost 0.3, staying 5.067, at 50 t/s (level 0)"


def test_a_policy_with_no_type_of_its_own_starts_on_the_cheapest() -> None:
    assert learner().starting_type() == 1
