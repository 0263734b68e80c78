"""Model predictive control: what it chooses, what it learns, and what it refuses."""

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

from penstock.domain.decision import Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import OperatorObservation
from penstock.perf.deployments import deployments
from penstock.perf.queueing import m_g_1
from penstock.policy.operator.mpc import ModelPredictive, MpcMemory

ONE = (NodeType(name="core", speedup=1.0, price=1.0, watts=5.0),)
SLOW_AND_FAST = (
    NodeType(name="fast", speedup=1.0, price=1.0, watts=5.0),
    NodeType(name="slow", speedup=0.6, price=1.0, watts=1.5),
)
RNG = np.random.default_rng(1)


def policy(types: tuple[NodeType, ...] = ONE, **changes: Any) -> ModelPredictive:
    plain = ModelPredictive(
        node_types=types,
        deployments=deployments(types, 12),
        queue=m_g_1(0.01, 0.5),
        service_time_s=0.01,
        service_scv=0.5,
        max_response_time_s=0.05,
    )
    return replace(plain, **changes)


def seen(rate: float, counts: tuple[int, ...] = (3,), **more: Any) -> OperatorObservation:
    plain = OperatorObservation(
        operator="op",
        at_s=60.0,
        replicas=Replicas(counts),
        arrival_rate=rate,
        response_time_s=0.012,
        utilisation=0.5,
    )
    return plain._replace(**more)


def wanted(one: ModelPredictive, what: OperatorObservation) -> Replicas:
    decision, _ = one.decide(one.initial(), what, RNG)
    return decision.target if isinstance(decision, Scale) else what.replicas


def kingman_cost(rate: float, count: int, *, alpha: float, beta: float) -> float:
    """Eq. 5 to 7, 12 and 13, by hand."""
    ideal_s = 0.01 / count
    load = rate * ideal_s
    if load >= 1:
        return inf
    response_s = load / (1 - load) * (1 + 0.5) / 2 * ideal_s + 0.01
    return alpha * float(np.exp(response_s / 0.05)) + beta * count


@pytest.mark.parametrize("rate", [20.0, 150.0, 333.0, 700.0, 1100.0])
def test_without_a_price_of_changes_it_is_the_cheapest_configuration(rate: float) -> None:
    best = min(range(1, 13), key=lambda count: kingman_cost(rate, count, alpha=3.0, beta=0.5))
    assert wanted(policy(gamma=0.0, horizon=1, ratios=0), seen(rate)).total == best


def test_throughput_is_the_fewest_replicas_that_keep_up() -> None:
    """Eq. 4 and 11: at 450 tuples/s of 10 ms, five; what is lost below costs far more than a replica."""
    assert wanted(policy(qos="throughput", alpha=2000.0, gamma=0.0), seen(450.0)).total == 5


def test_a_price_of_changes_slows_them_down() -> None:
    free = wanted(policy(gamma=0.0), seen(100.0, (12,))).total
    braked = wanted(policy(gamma=0.4), seen(100.0, (12,))).total
    assert free < braked < 12


def test_a_longer_horizon_loosens_the_brake() -> None:
    short = wanted(policy(gamma=0.4, horizon=1), seen(100.0, (12,))).total
    long = wanted(policy(gamma=0.4, horizon=4), seen(100.0, (12,))).total
    assert long < short


def test_it_grows_before_the_load_does() -> None:
    ahead = (100.0, 900.0, 900.0)
    assert wanted(policy(horizon=3), seen(100.0, forecast=ahead)).total > 3
    assert wanted(policy(horizon=3), seen(100.0)).total <= 3


def test_where_all_are_overloaded_it_takes_the_largest_and_says_so() -> None:
    decision, _ = policy().decide(MpcMemory(), seen(5000.0), RNG)
    assert isinstance(decision, Scale)
    assert decision.target == Replicas((12,))
    assert "overload every configuration" in decision.reason


def test_power_prefers_many_slow_cores_and_price_few_fast_ones() -> None:
    by_power = wanted(policy(SLOW_AND_FAST, resources="power", gamma=0.0), seen(300.0, (4, 0)))
    by_price = wanted(policy(SLOW_AND_FAST, gamma=0.0), seen(300.0, (4, 0)))
    assert by_power.counts[0] == 0
    assert by_price.counts[1] == 0


def test_waits_longer_than_predicted_make_it_careful() -> None:
    """Eq. 8: five times the wait expected of what runs counts five times from then on."""
    one = policy(gamma=0.0, horizon=1)
    decision, memory = one.decide(one.initial(), seen(280.0), RNG)
    usual = decision.target.total if isinstance(decision, Scale) else 3
    wait_s = 280.0 * 0.01 / usual / (1 - 2.8 / usual) * 0.75 * 0.01 / usual
    late = seen(280.0, (usual,), response_time_s=0.01 + 5 * wait_s)
    decision, memory = one.decide(memory, late, RNG)
    assert list(memory.ratios) == pytest.approx([5.0])
    assert isinstance(decision, Scale)
    assert decision.target.total > usual


def test_little_that_waits_in_an_idle_operator_is_not_held_against_it_without_end() -> None:
    one = policy()
    _, memory = one.decide(one.initial(), seen(0.001, response_time_s=5.0), RNG)
    assert memory.ratios == (10.0,)
    _, memory = one.decide(one.initial(), seen(1e-310, response_time_s=5.0), RNG)
    assert memory.ratios == ()


def test_a_request_that_was_refused_is_not_taken_for_the_models_error() -> None:
    one = policy(gamma=0.0, horizon=1)
    wait_s = 0.75 * (2.8 / 3) * (0.01 / 3) / (1 - 2.8 / 3)
    here = seen(280.0, (3,), response_time_s=0.01 + wait_s)
    memory = one.initial()
    for _ in range(3):  # whatever it asked for, three go on
        _, memory = one.decide(memory, here, RNG)
        assert list(memory.ratios) == pytest.approx([1.0])


@pytest.mark.parametrize("rate", [0.0, 1e-14])
def test_nothing_to_do_is_no_reason_for_replicas(rate: float) -> None:
    by_throughput = policy(qos="throughput", alpha=200.0, gamma=0.0)
    assert wanted(by_throughput, seen(rate, (12,))).total == 1
    assert wanted(by_throughput, seen(100.0, (3,), forecast=(0.0, 0.0))).total == 1


def test_an_overload_to_come_does_not_make_it_forget_what_changes_cost() -> None:
    soon = seen(280.0, (4,), forecast=(280.0, 280.0, 5000.0))
    decision, _ = policy(gamma=0.4, horizon=3).decide(MpcMemory(), soon, RNG)
    assert isinstance(decision, Scale)
    assert 4 < decision.target.total < 12
    assert "overload" not in decision.reason


def test_where_replicas_take_their_time_it_asks_for_them_so_much_earlier() -> None:
    ahead = (100.0, 100.0, 100.0, 900.0, 100.0)
    one = policy(horizon=1, gamma=0.0)
    at_once = seen(100.0, forecast=ahead, forecast_interval_s=5.0)
    assert wanted(one, at_once).total <= 3
    assert wanted(one, at_once._replace(ready_s=9.0)).total <= 3  # there in two steps, needed in three
    assert wanted(one, at_once._replace(ready_s=11.0)).total > 8


def test_where_replicas_take_their_time_none_goes_before_the_load() -> None:
    ahead = (900.0, 900.0, 100.0, 100.0, 100.0)
    one = policy(horizon=1, gamma=0.0)
    falling = seen(900.0, (10,), forecast=ahead, forecast_interval_s=5.0, ready_s=11.0)
    assert wanted(one, falling).total > 8


def test_the_mean_of_several_ratios_or_none() -> None:
    several, none = policy(ratios=3), policy(ratios=0)
    memory, blind = several.initial(), none.initial()
    for _ in range(5):
        _, memory = several.decide(memory, seen(250.0, response_time_s=0.03), RNG)
        _, blind = none.decide(blind, seen(250.0, response_time_s=0.03), RNG)
    assert len(memory.ratios) == 3
    assert blind.ratios == ()


def test_micro_batches_are_learned_and_replace_the_queue() -> None:
    """A batch of 100 tuples on two replicas in 1.5 s, .02 s each: .5 s whatever is in it."""
    one = policy(max_response_time_s=5.0)
    there = seen(100.0, (2,), batch_s=1.5, batch_tuples=100.0, service_time_s=0.02, trigger_s=0.5)
    _, memory = one.decide(one.initial(), there, RNG)
    model = memory.batches.model(trigger_s=0.5)
    assert model is not None
    decision, _ = one.decide(memory, there._replace(response_time_s=None, utilisation=None), RNG)
    assert not (isinstance(decision, Hold) and "not measured" in decision.reason)


def test_a_backlog_is_load() -> None:
    calm = wanted(policy(gamma=0.0), seen(200.0))
    behind = wanted(policy(gamma=0.0), seen(200.0, backlog=2000.0))
    assert behind.total > calm.total


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"qos": "speed"}, "choose latency or throughput"),
        ({"resources": "gold"}, "choose price or power"),
        ({"horizon": 0}, "at least 1"),
        ({"alpha": 0.0}, "above 0"),
        ({"beta": float("nan")}, "finite"),
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        policy(**changes)


def test_power_without_watts_is_refused() -> None:
    with pytest.raises(InputError, match="watts of node type 'plain' are not known"):
        policy((NodeType(name="plain", speedup=1.0, price=1.0),), resources="power")
