"""Objective first: what the objective asks for, from batches as they were measured."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from penstock.control.spec import Manager
from penstock.domain.decision import Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.observation import OperatorObservation
from penstock.perf.micro_batch import MicroBatches
from penstock.policy.operator.objective_first import ObjectiveFirst, ObjectiveMemory
from penstock.policy.registry import Level, entry
from penstock.simulation.one_operator import operator_of
from penstock.simulation.spec import OneOperator

RNG = np.random.default_rng(1)
TRUTH = MicroBatches(fixed_s=0.4, tuple_s=0.01)


def policy(bound_s: float, **parameters: float) -> ObjectiveFirst:
    """With a margin of three tenths, which the numbers below are worked out for."""
    spec = OneOperator(
        operator_policy=Manager("objective"),
        infrastructure="A:1",
        max_replicas=12,
        slo_s=bound_s,
        service_rate=100,
    )
    rates = np.full(10, 50.0)
    made: ObjectiveFirst = entry(Level.OPERATOR, "objective").build(
        operator_of(spec, rates, rates, 1), {"margin": 0.3, **parameters}
    )
    return made


def seen(rate: float, replicas: int, **measured: Any) -> OperatorObservation:
    """As batches of the truth make it, unless they never settle."""
    batch_s = TRUTH.batch_s(rate, replicas)
    facts: dict[str, Any] = {"batch_s": 5.0, "batch_tuples": (5.0 - 0.4) / 0.01 * replicas}
    if np.isfinite(batch_s):
        facts = {"batch_s": batch_s, "batch_tuples": rate * batch_s}
    given = {
        "operator": "o",
        "at_s": 0.0,
        "replicas": Replicas((replicas,)),
        "arrival_rate": rate,
        "response_time_s": 1.0,
        "utilisation": 0.5,
        "service_time_s": 0.01,
        "backlog": 0.0,
        **facts,
        **measured,
    }
    return OperatorObservation(**given)


def after(deciding: ObjectiveFirst, rates: list[float], replicas: int = 1) -> tuple[int, ObjectiveMemory]:
    """Replicas at the end of these intervals, every decision carried out at once."""
    memory = deciding.initial()
    for rate in rates:
        decision, memory = deciding.decide(memory, seen(rate, replicas), RNG)
        if isinstance(decision, Scale):
            replicas = decision.target.total
    return replicas, memory


@pytest.mark.parametrize(("bound_s", "wanted"), [(1.3, 6), (2.0, 4), (4.0, 3), (40.0, 3)])
def test_a_slack_objective_needs_fewer_replicas(bound_s: float, wanted: int) -> None:
    rate = 200.0
    within = (1 - 0.3) * bound_s
    assert TRUTH.response_time_s(rate, wanted) <= within < TRUTH.response_time_s(rate, wanted - 1)
    found, _ = after(policy(bound_s), [60.0, 80.0, 100.0, *[rate] * 5])
    assert found == wanted


@pytest.mark.parametrize(("trigger_s", "wanted"), [(None, 4), (1.2, 5), (30.0, 8)])
def test_a_trigger_is_part_of_the_response_time(trigger_s: float | None, wanted: int) -> None:
    """200 t/s of 10 ms within .7 x 2 s: .6 / (1 - 2 / k). With a trigger P: P / 2 + .4 + 2 P / k, within half
    as much again as P / 2 + .4, where that is longer: 1.5 s and 23.1 s."""
    deciding = policy(2.0, drain_s=1e6)
    memory = deciding.initial()
    for _ in range(6):
        _, memory = deciding.decide(memory, seen(100.0, 2), RNG)
    decision, _ = deciding.decide(memory, seen(200.0, 2, at_s=1.0, trigger_s=trigger_s), RNG)
    assert isinstance(decision, Scale)
    assert decision.target.total == wanted


def test_a_jump_of_the_load_is_answered_in_one_step() -> None:
    deciding = policy(2.0)
    replicas, memory = after(deciding, [50.0, 60.0, 70.0, 60.0])
    assert replicas <= 2
    decision, _ = deciding.decide(memory, seen(350.0, replicas), RNG)
    assert isinstance(decision, Scale)
    assert decision.target.total >= 6
    assert "needed for 2 s at 350 t/s" in decision.reason


def test_a_backlog_counts_until_it_is_drained() -> None:
    deciding = policy(3.0, drain_s=10.0)
    replicas, memory = after(deciding, [80.0, 100.0, 120.0, 100.0], replicas=2)
    calm, _ = deciding.decide(memory, seen(100.0, replicas), RNG)
    assert isinstance(calm, Hold)
    behind, _ = deciding.decide(memory, seen(100.0, replicas, backlog=2000.0), RNG)
    assert isinstance(behind, Scale)
    assert behind.target.total > replicas
    assert "and 1790 to work off" in behind.reason  # all but what may be inside: 100 t/s for 2.1 s


def test_a_load_that_varies_a_little_changes_nothing() -> None:
    deciding = policy(2.0)
    replicas, memory = after(deciding, [100.0, 130.0, 150.0, 150.0])
    changes = 0
    for rate in np.random.default_rng(3).normal(150.0, 5.0, 200):
        decision, memory = deciding.decide(memory, seen(float(rate), replicas), RNG)
        if isinstance(decision, Scale):
            changes += 1
            replicas = decision.target.total
    assert changes <= 2


def test_it_learns_that_its_work_has_become_slower() -> None:
    deciding = policy(2.0)
    replicas, memory = after(deciding, [80.0, 100.0, 120.0, 100.0])
    slow = MicroBatches(fixed_s=0.4, tuple_s=0.03)
    for rate in (80.0, 100.0, 120.0) * 20:
        batch_s = slow.batch_s(rate, 6)
        facts = {"batch_s": batch_s, "batch_tuples": rate * batch_s, "service_time_s": 0.03}
        decision, memory = deciding.decide(memory, seen(rate, 6, **facts), RNG)
    assert isinstance(decision, Scale)
    assert decision.target.total > replicas


def test_it_decides_the_same_from_the_same_memory() -> None:
    deciding = policy(2.0)
    _, memory = after(deciding, [80.0, 100.0])
    first = deciding.decide(memory, seen(300.0, 2), RNG)
    assert first == deciding.decide(memory, seen(300.0, 2), RNG)
    assert replace(deciding, margin=0.0).decide(memory, seen(300.0, 2), RNG) != first


def test_what_the_sources_bring_counts_not_the_burst_of_an_operator_that_catches_up() -> None:
    deciding = policy(2.0)
    replicas, memory = after(deciding, [100.0] * 6)
    burst = seen(100.0, replicas)._replace(arrival_rate=900.0, offered_rate=100.0, at_s=1.0)
    assert isinstance(deciding.decide(memory, burst, RNG)[0], Hold)
    alone = burst._replace(offered_rate=None)
    assert isinstance(deciding.decide(memory, alone, RNG)[0], Scale)


def test_replicas_on_their_way_are_not_asked_for_again_but_more_than_those_are() -> None:
    """1.5 x .4 / (1 - 4 / k) <= .7 x 2 from k = 7 on."""
    deciding = policy(2.0, drain_s=1e6)  # as if nothing would wait by then
    replicas, memory = after(deciding, [60.0] * 6)
    for coming, wanted in (((9,), None), ((1,), 7), (None, 7)):
        decision, _ = deciding.decide(memory, seen(400.0, replicas, at_s=1.0, coming=coming), RNG)
        assert (decision.target.total if isinstance(decision, Scale) else None) == wanted


def test_a_known_operator_in_the_middle_of_a_long_batch_is_decided_for_by_what_arrives() -> None:
    deciding = policy(2.0)
    replicas, memory = after(deciding, [60.0] * 6)
    blind = dict.fromkeys(("response_time_s", "utilisation", "service_time_s", "batch_s", "batch_tuples"))
    assert isinstance(deciding.decide(memory, seen(400.0, replicas, **blind), RNG)[0], Scale)
    unknown, _ = deciding.decide(deciding.initial(), seen(400.0, replicas, **blind), RNG)
    assert unknown == Hold("response time, utilisation not measured")


def test_batches_count_for_the_replicas_that_shared_them() -> None:
    """Two of four are new and had nothing: the batch is no slower for that."""
    deciding = policy(2.0)
    memory = deciding.initial()
    for _ in range(5):
        few = seen(100.0, 2)._replace(replicas=Replicas((4,)), batch_replicas=2.0)
        _, memory = deciding.decide(memory, few, RNG)
    model = memory.batches.model()
    assert model is not None
    assert model.fixed_s == pytest.approx(TRUTH.fixed_s)
