"""DRS for whole applications: against every allocation there is, and against the single operator's."""

from itertools import product
from math import factorial, inf

import numpy as np
import pytest

from penstock.apps.registry import application_entry
from penstock.domain.application import Application, Operator, Sink, Source, Stream, pipeline
from penstock.domain.decision import Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import ScaleIn, ScaleOut
from penstock.perf.deployments import deployments
from penstock.policy.application.drs import DrsManager
from penstock.policy.operator.drs import Drs
from penstock.policy.operator.node_choice import NodeChoice

TYPES = tuple(NodeType(name=f"t{i}", speedup=s, price=s) for i, s in enumerate((1.0, 0.5, 2.0)))
RNG = np.random.default_rng(1)


def erlang_c_sojourn(rate: float, service_time_s: float, servers: int) -> float:
    offered = rate * service_time_s
    if offered >= servers:
        return inf
    waiting_term = offered**servers / factorial(servers) * servers / (servers - offered)
    waits = waiting_term / (sum(offered**k / factorial(k) for k in range(servers)) + waiting_term)
    return service_time_s + waits * service_time_s / (servers - offered)


def drs(
    application: Application,
    limit_s: float,
    choice: NodeChoice = NodeChoice.FIRST,
    *,
    as_published: bool = False,
) -> DrsManager:
    return DrsManager(
        application=application,
        objective=Objective(response_time_s=limit_s),
        node_types=TYPES,
        node_choice=choice,
        as_published=as_published,
    )


def observed(
    application: Application, rate: float | None, running: dict[str, Replicas]
) -> ApplicationObservation:
    return ApplicationObservation(
        at_s=60.0,
        response_time_s=0.02,
        source_rate=rate,
        operators=tuple(
            OperatorObservation(
                operator=o.name,
                at_s=60.0,
                replicas=running[o.name],
                arrival_rate=rate,
                response_time_s=0.01,
                utilisation=0.5,
            )
            for o in application.operators
        ),
    )


def first_sizes(policy: DrsManager, rate: float) -> dict[str, int]:
    """What it asks for when one replica of its own type runs of each."""
    one = Replicas(tuple(int(index == policy.chosen_type) for index in range(3)))
    running = {o.name: one for o in policy.application.operators}
    verdict, _ = policy.grant(policy.initial(), [], observed(policy.application, rate, running))
    changed = {r.operator: r.target.total for r in verdict.granted if isinstance(r, ScaleOut)}
    return {o.name: changed.get(o.name, 1) for o in policy.application.operators}


# Tuples that reach split, slow, middle, fast and join per tuple of the source: every branch gets a copy.
DIAMOND_VISITS = (1, 1, 1, 1, 3)


@pytest.mark.parametrize("limit_ms", [14.0, 16.0, 20.0, 40.0, 200.0])
@pytest.mark.parametrize("rate", [100.0, 390.0])
def test_no_other_allocation_meets_the_limit_with_fewer(rate: float, limit_ms: float) -> None:
    app = application_entry("diamond").graph(4)

    def total_sojourn(counts: tuple[int, ...]) -> float:
        return sum(
            visits * erlang_c_sojourn(rate * visits, operator.service_time_s, count)
            for operator, visits, count in zip(app.operators, DIAMOND_VISITS, counts, strict=True)
        )

    enough = [c for c in product(range(1, 5), repeat=5) if total_sojourn(c) <= limit_ms / 1000]
    sizes = tuple(first_sizes(drs(app, limit_ms / 1000), rate).values())
    assert sizes in enough
    assert sum(sizes) == min(map(sum, enough))


def test_of_equally_many_replicas_it_takes_the_fastest_allocation() -> None:
    """The greedy step is optimal for every number of processors, so the last one is too."""
    app = pipeline(
        "two",
        Operator(name="a", service_time_s=0.01, max_replicas=6),
        Operator(name="b", service_time_s=0.004, max_replicas=6),
    )
    rate = 280.0
    sizes = first_sizes(drs(app, 0.02), rate)

    def both(a: int, b: int) -> float:
        return erlang_c_sojourn(rate, 0.01, a) + erlang_c_sojourn(rate, 0.004, b)

    total = sum(sizes.values())
    rivals = [both(a, total - a) for a in range(1, 7) if 1 <= total - a <= 6]
    assert both(sizes["a"], sizes["b"]) == pytest.approx(min(rivals))


def test_selectivity_thins_the_stream_before_it_is_counted() -> None:
    app = pipeline(
        "thin",
        Operator(name="a", service_time_s=0.001, selectivity=0.1),
        Operator(name="b", service_time_s=0.01),
    )
    assert first_sizes(drs(app, 0.2), 800.0) == {"a": 1, "b": 1}  # 80 t/s reach b, which takes 100


def chains(count: int) -> Application:
    """Chains of a source, an operator and a sink that have nothing to do with each other."""
    return Application(
        name=f"{count} chains",
        sources=tuple(Source(name=f"in{i}") for i in range(count)),
        operators=tuple(Operator(name=f"op{i}", service_time_s=0.01) for i in range(count)),
        sinks=tuple(Sink(name=f"out{i}") for i in range(count)),
        streams=tuple(
            Stream(origin=origin, target=target)
            for i in range(count)
            for origin, target in ((f"in{i}", f"op{i}"), (f"op{i}", f"out{i}"))
        ),
    )


def test_a_chain_gets_as_many_replicas_beside_others_as_alone() -> None:
    """At 150 t/s of every source two replicas take 22.9 ms and three 11.6 ms."""
    for count in (1, 2, 3):
        assert set(first_sizes(drs(chains(count), 0.015), 150.0).values()) == {3}


@pytest.mark.parametrize("choice", list(NodeChoice))
@pytest.mark.parametrize("as_published", [False, True])
def test_one_operator_gets_what_the_operator_policy_gives_it(choice: NodeChoice, as_published: bool) -> None:
    app = pipeline("one", Operator(name="op", service_time_s=0.01, max_replicas=8))
    alone = Drs(
        node_types=TYPES,
        deployments=deployments(TYPES, 8),
        node_choice=choice,
        service_time_s=0.01,
        max_response_time_s=0.025,
        as_published=as_published,
    )
    policy = drs(app, 0.025, choice, as_published=as_published)
    memory, fleets = alone.initial(), policy.initial()
    # As published, whatever runs counts; otherwise only the chosen type, so both begin with that.
    chosen = policy.chosen_type
    here = Replicas((1, 1, 0)) if as_published else Replicas(tuple(2 * (i == chosen) for i in range(3)))
    changes = 0
    for rate in (30.0, 90.0, 250.0, 420.0, 60.0, 0.0, 1000.0, 310.0):
        seen = observed(app, rate, {"op": here})
        decision, memory = alone.decide(memory, seen.operators[0], RNG)
        verdict, fleets = policy.grant(fleets, [], seen)
        granted = [r.target for r in verdict.granted if isinstance(r, ScaleOut | ScaleIn)]
        assert granted == ([decision.target] if isinstance(decision, Scale) else [])
        changes += len(granted)
        here = granted[0] if granted else here
    assert changes >= 4


def test_what_runs_on_other_nodes_is_exchanged_for_the_chosen_type_but_not_as_published() -> None:
    """One slow replica is not the fast one that was counted on: at 120 t/s it is overloaded for good."""
    app = pipeline("one", Operator(name="op", service_time_s=0.01, max_replicas=8))
    seen = observed(app, 120.0, {"op": Replicas((1, 0, 0))})
    policy = drs(app, 0.025, NodeChoice.FASTEST)
    fastest = policy.chosen_type
    verdict, fleets = policy.grant(policy.initial(), [], seen)
    (request,) = verdict.granted
    assert isinstance(request, ScaleOut)
    assert request.target.total == request.target.counts[fastest] > 0
    there = observed(app, 120.0, {"op": request.target})
    assert policy.grant(fleets, [], there)[0].granted == ()
    published = drs(app, 0.025, NodeChoice.FASTEST, as_published=True)
    verdict, _ = published.grant(published.initial(), [], seen)
    assert all(r.target.counts[0] == 1 for r in verdict.granted if isinstance(r, ScaleOut))


def test_as_published_it_stops_at_stability() -> None:
    app = application_entry("pipeline").graph(10)  # 1000, 300 and 300 tuples/s
    assert first_sizes(drs(app, 0.008, as_published=True), 620.0) == {"first": 1, "second": 3, "third": 3}


def test_when_nothing_is_enough_everything_is_asked_for() -> None:
    app = application_entry("pipeline").graph(3)
    assert first_sizes(drs(app, 0.05), 5000.0) == {"first": 3, "second": 3, "third": 3}


def test_without_the_rate_of_the_sources_nothing_is_changed() -> None:
    app = application_entry("pipeline").graph(3)
    policy = drs(app, 0.05)
    running = {o.name: Replicas((1, 0, 0)) for o in app.operators}
    memory = policy.initial()
    asked = ScaleOut(operator="first", target=Replicas((2, 0, 0)), nodes=(), score=1.0, reason="busy")
    verdict, after = policy.grant(memory, [asked], observed(app, None, running))
    assert verdict.granted == ()
    assert [refused.request for refused in verdict.refused] == [asked]
    assert after is memory


def test_a_limit_no_node_can_meet_is_refused() -> None:
    with pytest.raises(InputError, match=r"path first-second-third takes 3\.833 ms"):
        drs(application_entry("pipeline").graph(3), 0.0038)


def test_a_limit_the_chosen_type_cannot_meet_is_refused_by_its_name_but_not_as_published() -> None:
    """Services of 1, 3.33 and 3.33 ms: 7.667 at speedup 1, 3.833 at 2, 15.33 at a half."""
    app = application_entry("pipeline").graph(3)
    drs(app, 0.010, NodeChoice.FIRST)
    drs(app, 0.005, NodeChoice.FASTEST)
    with pytest.raises(InputError, match=r"takes 7\.667 ms .* type 't0', the only one used \(speedup 1\)"):
        drs(app, 0.005, NodeChoice.FIRST)
    with pytest.raises(InputError, match=r"takes 15\.33 ms .* type 't1', the only one used \(speedup 0\.5\)"):
        drs(app, 0.010, NodeChoice.CHEAPEST)
    for choice in NodeChoice:
        drs(app, 0.005, choice, as_published=True)
