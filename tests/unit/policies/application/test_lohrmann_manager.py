"""Lohrmann for whole applications: against every allocation there is, and the single operator's."""

from itertools import product
from math import ceil, inf

import numpy as np
import pytest
from test_drs_manager import TYPES, observed

from penstock.apps.registry import application_entry
from penstock.domain.application import Application, Operator, Path, pipeline
from penstock.domain.decision import Scale
from penstock.domain.deployment import Replicas
from penstock.domain.objective import Objective
from penstock.domain.request import ScaleIn, ScaleOut
from penstock.perf.deployments import deployments
from penstock.policy.application.lohrmann import LohrmannManager
from penstock.policy.application.sizing import Station
from penstock.policy.operator.lohrmann import Lohrmann
from penstock.policy.operator.node_choice import NodeChoice

RNG = np.random.default_rng(1)


def kingman(rate: float, operator: Operator, replicas: int) -> float:
    """W = rho / (1 - rho) (ca2 + cs2) / 2 S, De Matteis 2017 eq. 7, of a replica that gets its share."""
    rho = rate * operator.service_time_s / replicas
    return inf if rho >= 1 else rho / (1 - rho) * (1 + operator.service_scv) / 2 * operator.service_time_s


def lohrmann(
    application: Application, objective: Objective, *, as_published: bool = False
) -> LohrmannManager:
    return LohrmannManager(
        application=application,
        objective=objective,
        node_types=TYPES,
        node_choice=NodeChoice.FIRST,
        as_published=as_published,
    )


def sizes_at(policy: LohrmannManager, rate: float) -> dict[str, int]:
    running = {o.name: Replicas((1, 0, 0)) for o in policy.application.operators}
    verdict, _ = policy.grant(policy.initial(), [], observed(policy.application, rate, running))
    changed = {r.operator: r.target.total for r in verdict.granted if isinstance(r, ScaleOut)}
    return {o.name: changed.get(o.name, 1) for o in policy.application.operators}


@pytest.mark.parametrize("limit_ms", [8.0, 8.5, 10.0, 20.0, 50.0])
@pytest.mark.parametrize("rate", [80.0, 290.0, 610.0])
def test_a_path_gets_the_fewest_replicas_that_meet_its_limit(rate: float, limit_ms: float) -> None:
    app = application_entry("pipeline").graph(8)

    def total(counts: tuple[int, ...]) -> float:
        parts = zip(app.operators, counts, strict=True)
        return sum(operator.service_time_s + kingman(rate, operator, count) for operator, count in parts)

    enough = [counts for counts in product(range(1, 9), repeat=3) if total(counts) <= limit_ms / 1000]
    sizes = tuple(sizes_at(lohrmann(app, Objective(response_time_s=limit_ms / 1000)), rate).values())
    if enough:
        assert sizes in enough
        assert sum(sizes) == min(map(sum, enough))
    else:
        assert sizes == (8, 8, 8)


LEFT, RIGHT, SHORT = ("root", "inner", "left"), ("root", "inner", "right"), ("root", "short")


def test_every_path_meets_its_own_limit_and_the_last_has_nothing_to_spare() -> None:
    app = application_entry("multi-sink").graph(10)
    limits: dict[Path, float] = {LEFT: 0.020, RIGHT: 0.012, SHORT: 0.006}
    sizes = sizes_at(lohrmann(app, Objective(response_time_s=None, per_path_s=limits)), 640.0)

    def in_time(counts: dict[str, int]) -> dict[Path, bool]:
        return {
            path: sum(
                app.operator(n).service_time_s + kingman(640.0, app.operator(n), counts[n]) for n in path
            )
            <= limit
            for path, limit in limits.items()
        }

    assert all(in_time(sizes).values())
    # Paths come one after another: what a later one adds may leave an earlier one more than it needs.
    assert not in_time(sizes | {"short": sizes["short"] - 1})[SHORT]


@pytest.mark.parametrize("choice", list(NodeChoice))
@pytest.mark.parametrize("as_published", [False, True])
def test_one_operator_gets_what_the_operator_policy_gives_it(choice: NodeChoice, as_published: bool) -> None:
    operator = Operator(name="op", service_time_s=0.01, service_scv=0.5, max_replicas=8)
    app = pipeline("one", operator)
    alone = Lohrmann(
        node_types=TYPES,
        deployments=deployments(TYPES, 8),
        node_choice=choice,
        service_time_s=0.01,
        service_scv=0.5,
        max_response_time_s=0.030,
        as_published=as_published,
    )
    policy = LohrmannManager(
        application=app,
        objective=Objective(response_time_s=0.030),
        node_types=TYPES,
        node_choice=choice,
        as_published=as_published,
    )
    memory, fleets = alone.initial(), policy.initial()
    # As published, whatever runs counts; otherwise only the chosen type, so both begin with that.
    chosen = policy.chosen_type
    here = Replicas((1, 1, 0)) if as_published else Replicas(tuple(2 * (i == chosen) for i in range(3)))
    changes = 0
    for rate in (30.0, 99.5, 250.0, 420.0, 60.0, 0.0, 1000.0, 310.0):
        seen = observed(app, rate, {"op": here})
        decision, memory = alone.decide(memory, seen.operators[0], RNG)
        verdict, fleets = policy.grant(fleets, [], seen)
        granted = [r.target for r in verdict.granted if isinstance(r, ScaleOut | ScaleIn)]
        assert granted == ([decision.target] if isinstance(decision, Scale) else [])
        changes += len(granted)
        here = granted[0] if granted else here
    assert changes >= 4


def station(
    name: str, rate: float, operator: Operator, utilisation: float = 0.5, running: int = 1
) -> Station:
    return Station(
        name=name,
        rate=rate,
        service_time_s=operator.service_time_s,
        service_scv=operator.service_scv,
        most=10,
        running=running,
        utilisation=utilisation,
    )


def test_as_published_a_measured_bottleneck_is_doubled_and_the_others_stay() -> None:
    app = application_entry("pipeline").graph(10)
    policy = lohrmann(app, Objective(response_time_s=0.04), as_published=True)
    busy = {o.name: station(o.name, 650.0, o, running=2) for o in app.operators}
    busy["second"] = station("second", 650.0, app.operator("second"), utilisation=1.1, running=2)
    assert policy.sizes(busy, 650.0) == {"first": 2, "second": ceil(2 * 2 * 1.1), "third": 2}


def test_as_published_only_waiting_counts() -> None:
    """Service alone takes 7.7 ms of the 8; the published latency leaves it out and finds ample room."""
    app = application_entry("pipeline").graph(10)
    limit = Objective(response_time_s=0.008)
    assert sizes_at(lohrmann(app, limit), 200.0)["second"] > 5
    assert sizes_at(lohrmann(app, limit, as_published=True), 200.0) == {"first": 1, "second": 2, "third": 1}


def test_as_published_a_jump_ends_where_the_second_best_gains_more() -> None:
    """From one replica the quadratic formula is exact; step by step two replicas would have done."""
    fast = Operator(name="fast", service_time_s=0.001, service_scv=0.5)
    slow = Operator(name="slow", service_time_s=1 / 300, service_scv=1.0)
    policy = lohrmann(pipeline("two", fast, slow), Objective(response_time_s=0.005), as_published=True)
    rate = 290.0

    def gain(operator: Operator, replicas: int) -> float:
        return kingman(rate, operator, replicas) - kingman(rate, operator, replicas + 1)

    there = next(p for p in range(1, 10) if gain(slow, p) <= gain(fast, 1))
    assert kingman(rate, fast, 1) + kingman(rate, slow, 2) < 0.005
    assert there > 2
    assert sizes_at(policy, rate) == {"fast": 1, "slow": there}
