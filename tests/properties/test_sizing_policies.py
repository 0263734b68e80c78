"""Policies that compute how many replicas they want, against formulas and models of their own."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import factorial, inf

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.domain.application import Operator, pipeline
from penstock.domain.decision import Scale
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import ScaleIn, ScaleOut
from penstock.perf.deployments import deployments, handle_of, replicas_at
from penstock.policy.application.drs import DrsManager
from penstock.policy.application.lohrmann import LohrmannManager
from penstock.policy.application.sizing import SizingManager, Station
from penstock.policy.kernel import Seen, step
from penstock.policy.operator.drs import servers_needed
from penstock.policy.operator.ds2 import Ds2
from penstock.policy.operator.lohrmann import replicas_for_wait
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.operator.oldest_first import acknowledge, no_fleet, resize
from penstock.policy.operator.threshold import Threshold

MOST = 12
ONE_TYPE = (NodeType(name="node", speedup=1.0, price=1.0),)
SPACE = deployments(ONE_TYPE, MOST)
THREE_TYPES = tuple(NodeType(name=f"t{i}", speedup=1.0 + i, price=1.0) for i in range(3))
MIXED = deployments(THREE_TYPES, 6)
RNG = np.random.default_rng(1)


@settings(deadline=None)
@given(
    high=st.floats(0.05, 0.95),
    beta=st.floats(0.05, 0.95),
    replicas=st.integers(2, 4),
    share=st.floats(0, 1.5),
)
def test_a_threshold_never_undoes_itself_at_the_same_load(
    high: float, beta: float, replicas: int, share: float
) -> None:
    """Cardellini 2018, sec. 5.1: judging the survivors' load avoids scaling out right after scaling in."""
    load = replicas * share * high
    policy = Threshold(
        node_types=ONE_TYPE, deployments=SPACE, node_choice=NodeChoice.FIRST, threshold=high, beta=beta
    )

    def change(count: int) -> int:
        seen = OperatorObservation(
            operator="op",
            at_s=60.0,
            replicas=Replicas((count,)),
            arrival_rate=100.0,
            response_time_s=0.01,
            utilisation=load / count,
        )
        decision, _ = policy.decide(policy.initial(), seen, RNG)
        return decision.target.total - count if isinstance(decision, Scale) else 0

    first = change(replicas)
    assume(first != 0)
    assert change(replicas + first) in (0, first)


def erlang_c_sojourn(offered: float, service_time_s: float, servers: int) -> float:
    """Textbook sums, nothing shared with the recursion of the policy."""
    if offered >= servers:
        return inf
    waiting_term = offered**servers / factorial(servers) * servers / (servers - offered)
    waits = waiting_term / (sum(offered**k / factorial(k) for k in range(servers)) + waiting_term)
    return service_time_s + waits * service_time_s / (servers - offered)


@settings(deadline=None)
@given(offered=st.floats(0, 15), slack=st.floats(1.001, 20), most=st.integers(1, 20))
def test_drs_asks_for_the_fewest_servers_that_meet_the_limit(offered: float, slack: float, most: int) -> None:
    service = 0.01
    limit = slack * service
    times = [erlang_c_sojourn(offered, service, c) for c in range(1, most + 1)]
    assume(all(abs(time - limit) > 1e-9 for time in times))
    fits = [c for c, time in enumerate(times, start=1) if time <= limit]
    assert servers_needed(offered / service, service, limit, most) == (fits[0] if fits else most)


@settings(deadline=None)
@given(
    rate=st.floats(0, 3000),
    variability=st.floats(0.01, 3),
    wait_s=st.floats(0.0001, 0.1),
    most=st.integers(1, 60),
)
def test_lohrmanns_closed_form_is_the_fewest_by_trying_all(
    rate: float, variability: float, wait_s: float, most: int
) -> None:
    service = 0.01

    def wait(replicas: int) -> float:
        busy = rate * service / replicas
        return busy / (1 - busy) * variability * service if busy < 1 else inf

    waits = [wait(p) for p in range(1, most + 1)]
    assume(all(abs(time - wait_s) > 1e-9 for time in waits))
    fits = [p for p, time in enumerate(waits, start=1) if time <= wait_s]
    assert replicas_for_wait(rate, service, variability, wait_s, most) == (fits[0] if fits else most)


@dataclass(frozen=True, kw_only=True)
class Insatiable(SizingManager):
    """A formula that knows no limit."""

    def sizes(self, stations: Mapping[str, Station], source_rate: float) -> dict[str, int]:
        return dict.fromkeys(stations, 99)


@settings(deadline=None)
@given(
    manager=st.sampled_from((DrsManager, LohrmannManager, Insatiable)),
    choice=st.sampled_from(NodeChoice),
    as_published=st.booleans(),
    data=st.data(),
)
def test_a_sizing_manager_never_asks_for_more_than_an_operator_may_have(
    manager: type[SizingManager], choice: NodeChoice, as_published: bool, data: st.DataObject
) -> None:
    """Whatever the load, and on whatever nodes its replicas run by now."""
    most = {name: data.draw(st.integers(1, 6)) for name in ("a", "b")}
    app = pipeline(
        "two", *(Operator(name=name, service_time_s=0.01, max_replicas=limit) for name, limit in most.items())
    )
    policy = manager(
        application=app,
        objective=Objective(response_time_s=0.05),
        node_types=THREE_TYPES,
        node_choice=choice,
        as_published=as_published,
    )
    memory = policy.initial()
    rates = st.one_of(st.floats(0, 800), st.floats(800, 1e9))
    for _ in range(data.draw(st.integers(1, 4))):
        on = {n: data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=most[n])) for n in most}
        now = {name: Replicas(tuple(map(types.count, range(3)))) for name, types in on.items()}
        rate = data.draw(rates)
        seen = ApplicationObservation(
            at_s=60.0,
            response_time_s=0.02,
            source_rate=rate,
            operators=tuple(
                OperatorObservation(
                    operator=name,
                    at_s=60.0,
                    replicas=here,
                    arrival_rate=rate,
                    response_time_s=0.01,
                    utilisation=data.draw(st.sampled_from((0.0, 0.5, 0.995, 1.0, 7.5))),
                )
                for name, here in now.items()
            ),
        )
        verdict, memory = policy.grant(memory, [], seen)
        for request in verdict.granted:
            assert isinstance(request, ScaleOut | ScaleIn)
            assert 1 <= request.target.total <= most[request.operator]


@settings(deadline=None)
@given(
    manager=st.sampled_from((DrsManager, LohrmannManager)),
    as_published=st.booleans(),
    most=st.tuples(st.integers(1, 6), st.integers(1, 6)),
    rate=st.one_of(st.floats(0, 800), st.floats(800, 1e9)),
    utilisation=st.floats(0, 8),
    data=st.data(),
)
def test_the_formulas_of_drs_and_lohrmann_stop_at_what_each_operator_may_have(
    manager: type[SizingManager],
    as_published: bool,
    most: tuple[int, int],
    rate: float,
    utilisation: float,
    data: st.DataObject,
) -> None:
    """Or the reason in the journal would promise replicas that can never be."""
    app = pipeline("two", *(Operator(name=name, service_time_s=0.01) for name in ("a", "b")))
    policy = manager(
        application=app,
        objective=Objective(response_time_s=0.025),
        node_types=ONE_TYPE,
        node_choice=NodeChoice.FIRST,
        as_published=as_published,
    )
    stations = {
        operator.name: Station(
            name=operator.name,
            rate=rate,
            service_time_s=operator.service_time_s,
            service_scv=operator.service_scv,
            most=limit,
            running=data.draw(st.integers(1, limit)),
            utilisation=utilisation,
        )
        for operator, limit in zip(app.operators, most, strict=True)
    }
    sizes = policy.sizes(stations, rate)
    assert all(1 <= sizes[name] <= station.most for name, station in stations.items())


@settings(deadline=None)
@given(replicas=st.integers(1, MOST), true_rate=st.floats(1, 1e4), load=st.floats(0.01, 3 * MOST))
def test_ds2_lands_on_the_fewest_replicas_at_or_below_the_target(
    replicas: int, true_rate: float, load: float
) -> None:
    policy = Ds2(node_types=ONE_TYPE, deployments=SPACE)
    here = handle_of(SPACE, Replicas((replicas,)))
    seen = Seen(here, load * true_rate, 0.01, load / replicas, load / replicas)
    target = replicas_at(SPACE, step(policy.initial(), seen, RNG)[0]).total
    if policy.low <= load / replicas <= policy.high:
        assert target == replicas
        return
    assume(abs(load / policy.target - round(load / policy.target)) > 1e-9)
    assert target == MOST or load / target <= policy.target
    assert target == 1 or load / (target - 1) > policy.target


@settings(deadline=None)
@given(
    first=st.lists(st.integers(0, 2), min_size=1, max_size=6),
    moves=st.lists(
        st.one_of(
            st.tuples(st.just("resize"), st.integers(-1, 8), st.integers(0, 2)),
            st.tuples(st.just("outside"), st.lists(st.integers(0, 2), min_size=1, max_size=6), st.just(0)),
        ),
        max_size=25,
    ),
)
def test_a_fleet_is_a_queue_whoever_changes_it(
    first: list[int], moves: list[tuple[str, int | list[int], int]]
) -> None:
    def counts(types: list[int]) -> Replicas:
        return Replicas(tuple(types.count(node_type) for node_type in range(3)))

    fleet = no_fleet(MIXED)
    queue = sorted(first)  # ages unknown: types count in order
    here = handle_of(MIXED, counts(queue))
    acknowledge(fleet, here)
    for kind, what, node_type in moves:
        if kind == "outside" and isinstance(what, list):
            for one in range(3):  # of each type the oldest go
                for _ in range(queue.count(one) - what.count(one)):
                    queue.remove(one)
            queue += [one for one in range(3) for _ in range(what.count(one) - queue.count(one))]
            here = handle_of(MIXED, counts(queue))
        elif isinstance(what, int):
            wanted = min(max(what, 1), 6)
            queue = queue[max(len(queue) - wanted, 0) :] + [node_type] * max(wanted - len(queue), 0)
            here = resize(fleet, here, what, node_type)
        acknowledge(fleet, here)
        assert replicas_at(MIXED, here) == counts(queue)
        assert fleet.types[: fleet.size[0]].tolist() == queue
