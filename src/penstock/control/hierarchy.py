"""Operator, Node and Application Managers together (Cardellini 2018): one pure step from seeing to doing.

Operator Managers see only their own operator, Node Managers only their node; each asks, with
a score and a reason. The Application Manager runs at its own, slower pace, sees the whole
application, and answers. A refused request shows in the next observation as replicas that
did not change, which is how a learner notices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from numpy.random import Generator

from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.observation import ApplicationObservation, NodeObservation, OperatorObservation
from penstock.domain.request import Refused, Request, ScaleIn, ScaleOut, Verdict, new_nodes, request_of
from penstock.policy.api import ApplicationPolicy, NodePolicy, OperatorPolicy
from penstock.policy.node.place import busiest_host, choose_node

NO_ROOM = "no node has a free slot"
EXCHANGE = "on known nodes a change can add replicas or remove them, not exchange node types"
PLACING = "placing"  # the generator for operators without a manager of their own
Hosts = Mapping[str, tuple[str, ...]]  # operator -> node of each of its replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Managers:
    """Who decides what, and how often."""

    operators: Mapping[str, OperatorPolicy[Any]]
    application: ApplicationPolicy[Any]
    nodes: Mapping[str, NodePolicy] = field(default_factory=dict)
    application_period_s: float = 30.0
    operator_period_s: Mapping[str, float] = field(default_factory=dict)  # every round where not named
    rest_s: float = 0.0  # after a change, local managers wait until their measurements mean something


_NEVER: Mapping[str, float] = {}


class ManagersMemory(NamedTuple):
    """Everything the managers remember."""

    operators: Mapping[str, Any]
    application: Any
    granted_at_s: float | None = None  # when the Application Manager last ran
    changed_at_s: float | None = None  # when something was last changed
    # When Operator Managers last ran; not kept where all run in every round.
    decided_at_s: Mapping[str, float] = _NEVER


class Round(NamedTuple):
    """One round: what was decided where, what was asked for, what was granted."""

    decisions: Mapping[str, Decision]
    requests: tuple[Request, ...]
    verdict: Verdict


def first_memory(managers: Managers) -> ManagersMemory:
    return ManagersMemory(
        operators={name: policy.initial() for name, policy in managers.operators.items()},
        application=managers.application.initial(),
    )


def decide(
    managers: Managers,
    memory: ManagersMemory,
    seen: ApplicationObservation,
    rngs: Mapping[str, Generator],
    *,
    nodes: Mapping[str, NodeObservation] | None = None,
    hosts: Hosts | None = None,
) -> tuple[Round, ManagersMemory]:
    """One round of all managers. `rngs` has one per managed operator and per node, and `PLACING`."""
    resting = memory.changed_at_s is not None and seen.at_s - memory.changed_at_s < managers.rest_s
    if resting:
        why = f"resting until {managers.rest_s:g} s after the last change"
        return Round(
            decisions={o.operator: Hold(why) for o in seen.operators}, requests=(), verdict=Verdict(())
        ), memory
    decisions: dict[str, Decision] = {}
    changes: list[tuple[OperatorObservation, Scale]] = []
    memories, periods = dict(memory.operators), managers.operator_period_s
    for one in seen.operators:
        name = one.operator
        policy = managers.operators.get(name)
        if policy is not None and (not periods or _is_due(managers, memory, name, seen.at_s)):
            decision, memories[name] = policy.decide(memories[name], one, rngs[name])
            decisions[name] = decision
            if isinstance(decision, Scale):
                changes.append((one, decision))
    decided_at_s = memory.decided_at_s
    if periods:
        decided_at_s = {**decided_at_s, **dict.fromkeys(decisions, seen.at_s)}
    requests, impossible = _requests(changes, rngs, nodes, hosts)
    if nodes:
        requests += _proposals(managers, rngs, nodes)
    due = memory.granted_at_s is None or seen.at_s - memory.granted_at_s >= managers.application_period_s
    if not due:
        waiting = tuple(Refused(request, "the Application Manager runs later") for request in requests)
        memory = memory._replace(operators=memories, decided_at_s=decided_at_s)
        return Round(decisions=decisions, requests=tuple(requests), verdict=Verdict((), waiting)), memory
    verdict, state = managers.application.grant(memory.application, requests, seen)
    if verdict.decisions:
        decisions |= verdict.decisions
    if verdict.granted and nodes is not None and hosts is not None:
        verdict = _placed(verdict, {one.operator: one.replicas for one in seen.operators}, rngs, nodes, hosts)
    if impossible or verdict.decisions:
        verdict = Verdict(verdict.granted, (*verdict.refused, *impossible))
    changed_at_s = seen.at_s if verdict.granted else memory.changed_at_s
    memory = ManagersMemory(memories, state, seen.at_s, changed_at_s, decided_at_s)
    return Round(decisions, tuple(requests), verdict), memory


def _is_due(managers: Managers, memory: ManagersMemory, operator: str, at_s: float) -> bool:
    last = memory.decided_at_s.get(operator)
    return last is None or at_s - last >= managers.operator_period_s.get(operator, 0.0)


def _requests(
    changes: Sequence[tuple[OperatorObservation, Scale]],
    rngs: Mapping[str, Generator],
    nodes: Mapping[str, NodeObservation] | None,
    hosts: Hosts | None,
) -> tuple[list[Request], list[Refused]]:
    """Decisions to change, as requests; they name nodes where nodes are known."""
    requests: list[Request] = []
    impossible: list[Refused] = []
    for one, decision in changes:
        request = request_of(one.operator, one.replicas, decision)
        if nodes is not None and hosts is not None:
            chosen = _nodes_for(request, one.replicas, nodes, hosts[one.operator], rngs[one.operator])
            if isinstance(chosen, str):
                impossible.append(Refused(request, chosen))
                continue
            request = replace(request, nodes=chosen)
        requests.append(request)
    return requests, impossible


def _proposals(
    managers: Managers, rngs: Mapping[str, Generator], nodes: Mapping[str, NodeObservation]
) -> list[Request]:
    """What Node Managers ask for."""
    proposed = [
        policy.propose(nodes[name], nodes, rngs[name])
        for name, policy in managers.nodes.items()
        if name in nodes
    ]
    return [request for request in proposed if request is not None]


def _placed(
    verdict: Verdict,
    now: Mapping[str, Replicas],
    rngs: Mapping[str, Generator],
    nodes: Mapping[str, NodeObservation],
    hosts: Hosts,
) -> Verdict:
    """Nodes for what the Application Manager decided itself, since no Operator Manager has chosen any."""
    left = dict(nodes)
    granted: list[Request] = []
    homeless: list[Refused] = []
    for request in verdict.granted:
        home: Request = request
        if isinstance(request, ScaleOut | ScaleIn) and not request.nodes:
            operator = request.operator
            rng = rngs[operator] if operator in rngs else rngs[PLACING]
            chosen = _nodes_for(request, now[operator], left, hosts[operator], rng)
            if isinstance(chosen, str):
                homeless.append(Refused(request, chosen))
                continue
            home = replace(request, nodes=chosen)
        granted.append(home)
        for name in new_nodes(home):
            left[name] = left[name]._replace(free_slots=left[name].free_slots - 1)
    return Verdict(tuple(granted), (*verdict.refused, *homeless))


def _nodes_for(
    request: ScaleOut | ScaleIn,
    now: Replicas,
    nodes: Mapping[str, NodeObservation],
    hosts: tuple[str, ...],
    rng: Generator,
) -> tuple[str, ...] | str:
    """Nodes for the replicas to add or remove, or why there are none."""
    changes = _changes(now, request.target).values()
    if min(changes, default=0) < 0 < max(changes, default=0):
        return EXCHANGE
    if isinstance(request, ScaleIn):
        return _leaving(now, request.target, nodes, hosts)
    left = dict(nodes)
    chosen: list[str] = []
    for node_type, delta in _changes(now, request.target).items():
        for _ in range(max(delta, 0)):
            others = [name for name, node in left.items() if node.node_type != node_type]
            picked = choose_node(hosts[0], left, rng, avoid=others)
            if picked is None:
                return NO_ROOM
            chosen.append(picked)
            left[picked] = left[picked]._replace(free_slots=left[picked].free_slots - 1)
    return tuple(chosen)


def _leaving(
    now: Replicas, target: Replicas, nodes: Mapping[str, NodeObservation], hosts: tuple[str, ...]
) -> tuple[str, ...]:
    left = list(hosts)
    gone: list[str] = []
    for node_type, delta in _changes(now, target).items():
        for _ in range(max(-delta, 0)):
            node = busiest_host([host for host in left if nodes[host].node_type == node_type], nodes)
            left.remove(node)
            gone.append(node)
    return tuple(gone)


def _changes(now: Replicas, target: Replicas) -> dict[int, int]:
    pairs = zip(now.counts, target.counts, strict=True)
    return {index: after - before for index, (before, after) in enumerate(pairs) if after != before}
