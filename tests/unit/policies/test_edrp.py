"""EDRP as a manager: what it plans, and how it gets there, one change per operator and round."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from penstock.domain.application import Application, Operator, Sink, Source, Stream
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, NodeObservation, OperatorObservation
from penstock.domain.request import Migrate, Request, ScaleIn, ScaleOut
from penstock.policy.application.edrp import PlanningManager

SLOW, FAST = NodeType(name="slow", speedup=1.0, price=1.0), NodeType(name="fast", speedup=2.0, price=3.0)
NAMES = ("first", "second")
APPLICATION = Application(
    name="two",
    sources=(Source(name="source"),),
    operators=tuple(Operator(name=name, service_time_s=0.01, max_replicas=3) for name in NAMES),
    sinks=(Sink(name="sink"),),
    streams=(
        Stream(origin="source", target="first"),
        Stream(origin="first", target="second"),
        Stream(origin="second", target="sink"),
    ),
)


def manager(*, types: tuple[NodeType, ...] = (SLOW,), restricted: bool = False) -> PlanningManager:
    return PlanningManager(
        application=APPLICATION,
        objective=Objective(response_time_s=0.1),
        node_types=types,
        restricted=restricted,
        response_time=0.0,
        cost=1.0,
        downtime=0.0,
    )


def seen(
    rate: float | None,
    hosts: dict[str, tuple[str, ...]],
    *,
    nodes: dict[str, int] | None = None,
    at_s: float = 60.0,
) -> ApplicationObservation:
    """Nodes with two slots each, by type, 10 ms apart; without any, hosts are types."""
    kinds = [SLOW.name, FAST.name]

    types = {
        host: kinds.index(host) if nodes is None else nodes[host]
        for there in hosts.values()
        for host in there
    }

    def counts(name: str) -> tuple[int, ...]:
        of = [types[host] for host in hosts[name]]
        return tuple(of.count(kind) for kind in range(1 + max([*types.values(), *(nodes or {}).values()])))

    there = None
    if nodes is not None:
        hosted = {node: tuple(o for o in NAMES for host in hosts[o] if host == node) for node in nodes}
        there = {
            node: NodeObservation(
                node=node,
                node_type=kind,
                at_s=at_s,
                utilisation=None,
                hosted=hosted[node],
                free_slots=2 - len(hosted[node]),
                delay_s={other: 0.01 for other in nodes if other != node},
            )
            for node, kind in nodes.items()
        }
    return ApplicationObservation(
        at_s=at_s,
        response_time_s=0.05,
        source_rate=rate,
        operators=tuple(
            OperatorObservation(
                operator=name,
                at_s=at_s,
                replicas=Replicas(counts(name)),
                arrival_rate=rate,
                response_time_s=0.02,
                utilisation=0.5,
            )
            for name in NAMES
        ),
        nodes=there,
        hosts=None if nodes is None else hosts,
    )


def carried_out(
    hosts: dict[str, tuple[str, ...]], granted: tuple[Request, ...]
) -> dict[str, tuple[str, ...]]:
    after = {name: list(there) for name, there in hosts.items()}
    for request in granted:
        there = after[request.operator]
        match request:
            case Migrate():
                there.remove(request.origin)
                there.append(request.target)
            case ScaleOut():
                there.extend(request.nodes)
            case ScaleIn():
                for node in request.nodes:
                    there.remove(node)
        if not isinstance(request, Migrate):
            assert request.target.total == len(there)
    return {name: tuple(there) for name, there in after.items()}


def test_without_nodes_it_takes_the_cheapest_replicas_that_keep_the_objective() -> None:
    """At 1.1 x 150 tuples/s two replicas have 10 ms / (1 - .825) = 57 ms, for both 114; three have 22."""
    verdict, _ = manager().grant(
        PlanningManager.initial(manager()), (), seen(150.0, {"first": ("slow",), "second": ("slow",)})
    )
    assert sorted(request.target.total for request in verdict.granted if isinstance(request, ScaleOut)) == [
        2,
        3,
    ]
    assert all(request.nodes == () for request in verdict.granted if isinstance(request, ScaleOut))


@pytest.mark.parametrize("restricted", [False, True])
def test_step_by_step_it_gets_where_it_planned_to(restricted: bool) -> None:
    nodes = {"a": 0, "b": 0, "c": 0, "d": 0}
    hosts: dict[str, tuple[str, ...]] = {"first": ("a",), "second": ("b",)}
    policy = manager(restricted=restricted)
    memory = policy.initial()
    rng = np.random.default_rng(1)
    for at_s, rate in enumerate((150.0, 250.0, 40.0, 180.0, 90.0), start=1):
        for number in range(8):
            now = seen(rate + rng.uniform(0, 0.1), hosts, nodes=nodes, at_s=1000.0 * at_s + number)
            verdict, memory = policy.grant(memory, (), now)
            assert len({request.operator for request in verdict.granted}) == len(verdict.granted)
            hosts = carried_out(hosts, verdict.granted)
            assert all(1 <= len(there) <= 3 for there in hosts.values())
            if not verdict.granted:
                break
        assert not verdict.granted
        assert {name: Counter(there) for name, there in hosts.items()} == {
            name: Counter(there) for name, there in memory.plan.items()
        }


def test_replicas_on_another_type_are_exchanged_by_adding_first() -> None:
    """One fast node keeps what two slow ones do not need to: at 150 tuples/s two slow are cheaper."""
    nodes = {"slow-1": 0, "slow-2": 0, "slow-3": 0, "fast-1": 1}
    hosts: dict[str, tuple[str, ...]] = {"first": ("fast-1",), "second": ("fast-1",)}
    policy = manager(types=(SLOW, FAST))
    memory = policy.initial()
    for number in range(8):
        verdict, memory = policy.grant(memory, (), seen(30.0, hosts, nodes=nodes, at_s=60.0 + number))
        hosts = carried_out(hosts, verdict.granted)
        assert all(hosts.values())
    assert all(host.startswith("slow") for there in hosts.values() for host in there)


def test_a_load_that_no_plan_can_take_gets_all_there_is_and_the_reason_says_so() -> None:
    verdict, memory = manager().grant(
        manager().initial(), (), seen(5000.0, {"first": ("slow",), "second": ("slow",)})
    )
    assert all(isinstance(one, ScaleOut) and one.target.total == 3 for one in verdict.granted)
    assert "can be taken" in memory.why


def test_what_was_not_measured_is_waited_for() -> None:
    verdict, memory = manager().grant(
        manager().initial(), (), seen(None, {"first": ("slow",), "second": ("slow",)})
    )
    assert not verdict.granted
    assert memory == manager().initial()


def test_too_many_deployments_are_refused_in_one_line_and_the_restricted_problem_takes_them() -> None:
    wide = replace(
        APPLICATION, operators=tuple(replace(one, max_replicas=10) for one in APPLICATION.operators)
    )
    nodes = {f"n{number}": 0 for number in range(12)}
    what = seen(150.0, {"first": ("n0",), "second": ("n1",)}, nodes=nodes)
    with pytest.raises(InputError, match="choose redrp"):
        replace(manager(), application=wide).grant(manager().initial(), (), what)
    verdict, _ = replace(manager(restricted=True), application=wide).grant(manager().initial(), (), what)
    assert verdict.granted


def _granted_over(policy: PlanningManager, loads: list[float], nodes: dict[str, int]) -> list[int]:
    """How many changes each round had, all of them carried out; no host is ever given too much."""
    hosts: dict[str, tuple[str, ...]] = {"first": ("a",), "second": ("a",)}
    memory, made = policy.initial(), []
    for number, load in enumerate(loads):
        verdict, memory = policy.grant(memory, (), seen(load, hosts, nodes=nodes, at_s=60.0 * (number + 1)))
        hosts = carried_out(hosts, verdict.granted)
        used = Counter(host for there in hosts.values() for host in there)
        assert max(used.values()) <= 2, f"round {number}: {used}"
        made.append(len(verdict.granted))
    return made


@pytest.mark.parametrize("load", [30.0, 67.0, 90.9, 100.0, 130.0, 133.0])
def test_a_load_that_wavers_is_not_followed_to_and_fro(load: float) -> None:
    policy = replace(manager(), response_time=0.3, cost=0.3, downtime=0.4, every_s=1e9)
    wavering = [load * (1.02 if number % 2 else 0.98) for number in range(40)]
    made = _granted_over(policy, wavering, {"a": 0, "b": 0, "c": 0})
    assert sum(made[-24:]) == 0


@pytest.mark.parametrize("seed", range(5))
def test_no_node_is_given_more_than_it_has_room_for(seed: int) -> None:
    rng = np.random.default_rng(seed)
    loads = [float(rng.choice([20.0, 90.0, 150.0, 240.0])) for _ in range(12) for _ in range(6)]
    _granted_over(manager(), loads, {"a": 0, "b": 0, "c": 0})


def test_operators_that_want_each_others_places_get_there_all_the_same() -> None:
    """Both nodes are full, and the plan wants every operator on one of them."""
    nodes = {"a": 0, "b": 0}
    hosts: dict[str, tuple[str, ...]] = {"first": ("a", "b"), "second": ("a", "b")}
    policy = manager()
    plan = {"first": ("a", "a"), "second": ("b", "b")}
    memory = policy.initial()._replace(plan=plan, made_at_s=0.0, level=61, why="as given")
    for number in range(8):
        now = seen(1.1**61 / 1.1, hosts, nodes=nodes, at_s=60.0 + number)
        verdict, memory = policy.grant(memory, (), now)
        hosts = carried_out(hosts, verdict.granted)
        used = Counter(host for there in hosts.values() for host in there)
        assert max(used.values()) <= 2
    assert {name: tuple(sorted(there)) for name, there in hosts.items()} == plan


def test_a_lone_replica_is_not_planned_where_it_cannot_go() -> None:
    alone = replace(
        APPLICATION, operators=tuple(replace(one, max_replicas=1) for one in APPLICATION.operators)
    )
    nodes = {"slow-1": 0, "slow-2": 0, "fast-1": 1}
    policy = replace(manager(types=(SLOW, FAST)), application=alone)
    hosts: dict[str, tuple[str, ...]] = {"first": ("slow-1",), "second": ("slow-2",)}
    _, memory = policy.grant(policy.initial(), (), seen(120.0, hosts, nodes=nodes))
    assert all(host.startswith("slow") for there in memory.plan.values() for host in there)
    assert "can be taken" in memory.why
    # Without nodes, replicas are simply exchanged.
    verdict, _ = policy.grant(policy.initial(), (), seen(30.0, {"first": ("fast",), "second": ("slow",)}))
    assert [(one.operator, one.target) for one in verdict.granted if isinstance(one, ScaleOut)] == [
        ("first", Replicas((1, 0)))
    ]


def test_a_replica_on_a_node_nobody_knows_is_waited_for() -> None:
    there = seen(120.0, {"first": ("a",), "second": ("a",)}, nodes={"a": 0})
    lost = there._replace(hosts={"first": ("gone",), "second": ("a",)})
    verdict, memory = manager().grant(manager().initial(), (), lost)
    assert not verdict.granted
    assert memory == manager().initial()
