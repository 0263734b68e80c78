"""The two policies that model predictive control is compared with."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from penstock.domain.decision import Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import OperatorObservation
from penstock.perf.deployments import deployments
from penstock.policy.operator.rule_based import RuleBased
from penstock.policy.operator.spl import Spl

CORE = (NodeType(name="core", speedup=1.0, price=1.0),)
RNG = np.random.default_rng(1)
RULES = RuleBased(node_types=CORE, deployments=deployments(CORE, 6))
SPL = Spl(node_types=CORE, deployments=deployments(CORE, 6))


def seen(replicas: int, load: float, rate: float = 100.0, **more: Any) -> OperatorObservation:
    return OperatorObservation(
        operator="op",
        at_s=60.0,
        replicas=Replicas((replicas,)),
        arrival_rate=rate,
        response_time_s=0.01,
        utilisation=load,
    )._replace(**more)


def change(decision: object, now: int) -> int:
    return decision.target.total - now if isinstance(decision, Scale) else 0


@pytest.mark.parametrize(("load", "replicas", "by"), [
    (0.95, 3, +1), (0.85, 3, 0), (0.5, 3, -1), (0.5, 1, 0), (0.95, 6, 0), (0.9, 3, 0), (0.8, 3, 0),
])  # fmt: skip
def test_rules(load: float, replicas: int, by: int) -> None:
    decision, _ = RULES.decide(None, seen(replicas, load), RNG)
    assert change(decision, replicas) == by


def test_rules_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(InputError, match="must increase"):
        replace(RULES, low=0.95)


def follow(rates: list[float], capacity: float = 50.0, replicas: int = 1, spl: Spl = SPL) -> list[int]:
    """An operator whose replicas pass `capacity` tuples/s each, and hold back what is beyond."""
    memory, made = spl.initial(), []
    for rate in rates:
        load = rate / (replicas * capacity)
        held = max(1 - 1 / load, 0.0) if load > 0 else 0.0
        decision, memory = spl.decide(memory, seen(replicas, load, rate, held_back=held), RNG)
        replicas += change(decision, replicas)
        made.append(replicas)
    return made


def test_spl_grows_until_it_is_not_congested_and_stays_there() -> None:
    """180 tuples/s of 50 each: four; of three it knows that they were congested."""
    made = follow([180.0] * 12)
    assert made[:3] == [2, 3, 4]
    assert made[3:] == [4] * 9


def test_spl_also_grows_where_one_more_is_a_small_share() -> None:
    """The tenth replica brings a ninth more, which is all that it can."""
    made = follow([570.0] * 20, spl=Spl(node_types=CORE, deployments=deployments(CORE, 12)))
    assert made[-1] == 11  # of which a tenth is held back: not yet congested


def test_spl_forgets_when_the_load_changes() -> None:
    made = follow([180.0] * 8 + [60.0] * 8 + [280.0] * 10)
    assert made[15] == 2
    assert made[-1] == 6


def test_spl_does_not_try_again_what_did_not_help() -> None:
    """Whatever the replicas, no more than 90 tuples/s get through: some other limit."""
    memory, replicas, made = SPL.initial(), 1, []
    for _ in range(10):
        passed = min(50.0 * replicas, 90.0)
        decision, memory = SPL.decide(
            memory, seen(replicas, 200.0 / passed, 200.0, held_back=1 - passed / 200.0), RNG
        )
        replicas += change(decision, replicas)
        made.append(replicas)
    assert max(made) <= 4
    assert len(set(made[-3:])) == 1


def test_without_a_measure_of_congestion_a_full_load_is_one() -> None:
    decision, _ = SPL.decide(SPL.initial(), seen(2, 1.4), RNG)
    assert change(decision, 2) == 1
