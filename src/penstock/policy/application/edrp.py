"""EDRP as an Application Manager (Cardellini 2017): replicas and where they run, planned for all operators.

A plan is made from what the sources bring and from the delays between nodes as far as they are known, with
what a change interrupts weighed in (`planning/`). It is made anew when the load has reached another level,
and after a while in any case, and carried out one change per operator and round. Where nodes are not known,
all of a type count as one, with room for everything and next to each other.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil, comb, log
from typing import Annotated, NamedTuple

import numpy as np

from penstock.domain.application import Application, Operator
from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, NodeObservation, OperatorObservation
from penstock.domain.request import Migrate, Refused, Request, ScaleIn, ScaleOut, Verdict, request_of
from penstock.perf.latency import check_objective, without_delays
from penstock.perf.queueing import queue_as_known
from penstock.perf.traffic import visits
from penstock.planning.problem import (
    Deployment,
    Engine,
    Goal,
    Host,
    Network,
    Plan,
    PlannedOperator,
    PlannedStream,
    Problem,
    Readings,
)
from penstock.planning.solve import Incumbent, Optimal, TimedOut, solve
from penstock.policy.kernel import is_measured
from penstock.policy.parameters import Param
from penstock.policy.registry import application_policy

_LEVEL = 1.1  # how much higher each level of the load is than the one below it
_LESS = 0.8  # of the load, planned for where no plan can take all of it
_LEAST_SHARE = 0.01  # of the load, below which nothing helps
_NOTHING = -1_000_000  # the level of no load
_MOST_DEPLOYMENTS = 5_000  # of an operator
_PATIENCE = 30  # looks at a search that goes on, a tenth of a second or so apart


class PlanMemory(NamedTuple):
    """The plan that is being carried out, and what it was made for."""

    plan: Mapping[str, Deployment] = {}
    made_at_s: float = 0.0
    level: int | None = None
    why: str = ""
    steps: bool = False  # it was a step of several: with it carried out, the next is planned


@application_policy(
    {"edrp": {"restricted": False}, "redrp": {"restricted": True}},
    needs_model=True,
    decides_itself=True,
    anticipates=True,
)
@dataclass(frozen=True, kw_only=True)
class PlanningManager:
    """Plans replicas and their nodes for all operators: response time, cost and downtime, weighed."""

    application: Application
    objective: Objective
    node_types: tuple[NodeType, ...]
    restricted: bool  # to plans that change every operator by one replica at the most
    delays_s: Mapping[str, float] = field(default_factory=dict)  # constant, whatever load and nodes
    response_time: Annotated[float, Param("weight of the response time", at_least=0)] = 0.3
    cost: Annotated[float, Param("weight of what replicas cost", at_least=0)] = 0.3
    downtime: Annotated[float, Param("weight of what a change interrupts", at_least=0)] = 0.4
    headroom: Annotated[float, Param("share of the load that is planned for on top of it", at_least=0)] = 0.1
    pause_s: Annotated[float, Param("seconds that a change interrupts the application for", at_least=0)] = 1.0
    max_downtime_s: Annotated[
        float, Param("most seconds of interruption, the unit it is weighed in", above=0)
    ] = 60.0
    every_s: Annotated[float, Param("seconds after which a plan is made anew in any case", above=0)] = 600.0

    def __post_init__(self) -> None:
        if self.response_time + self.cost + self.downtime <= 0:
            raise InputError("edrp: all weights are 0; response_time, cost or downtime must count")
        fastest = max(one.speedup for one in self.node_types)
        check_objective(self.application, self.objective, fastest=fastest, delays_s=self.delays_s)

    def initial(self) -> PlanMemory:
        return PlanMemory()

    def grant(
        self, memory: PlanMemory, requests: Sequence[Request], seen: ApplicationObservation
    ) -> tuple[Verdict, PlanMemory]:
        there = {one.operator: one for one in seen.operators}
        missing = [one.name for one in self.application.operators if not _is_seen(there.get(one.name))]
        rate = seen.source_rate
        if missing or rate is None or not is_measured(rate, finite=True):
            why = f"operator '{missing[0]}' not measured" if missing else "source rate not measured"
            return self._verdict({}, dict.fromkeys(there, Hold(why)), requests), memory
        if seen.nodes is not None and any(
            host not in seen.nodes for hosts in (seen.hosts or {}).values() for host in hosts
        ):
            return self._verdict(
                {}, dict.fromkeys(there, Hold("a replica's node is not known")), requests
            ), memory
        now = self._now(seen)
        level = _level((1 + self.headroom) * rate)
        old = seen.at_s - memory.made_at_s >= self.every_s
        goes_on = memory.steps and _same(memory.plan, now)
        # A load near the border of two levels must not change them to and fro.
        moved = memory.level is None or level > memory.level or level < memory.level - 1
        if moved or old or goes_on or set(memory.plan) != set(now):
            memory = self._planned(seen, now, level)
        changes = self._changes(now, memory, seen)
        decisions: dict[str, Decision] = {}
        for name in there:
            change = changes.get(name)
            if change is None:
                behind = (
                    "" if sorted(now[name]) == sorted(memory.plan[name]) else "; no room for its change yet"
                )
                decisions[name] = Hold(memory.why + behind)
            elif isinstance(change, Migrate):
                decisions[name] = Hold(change.reason)
            else:
                decisions[name] = Scale(target=change.target, score=1.0, reason=change.reason)
        return self._verdict(changes, decisions, requests), memory

    @staticmethod
    def _verdict(
        granted: Mapping[str, Request], decisions: Mapping[str, Decision], requests: Sequence[Request]
    ) -> Verdict:
        why = "the Application Manager decides for all operators"
        return Verdict(
            tuple(granted.values()), tuple(Refused(request, why) for request in requests), decisions
        )

    def _planned(self, seen: ApplicationObservation, now: Plan, level: int) -> PlanMemory:
        """The best plan for the load; where none can take it, for as much of it as one can."""
        network = self._network(seen)
        share, wanted = 1.0, _top_of(level)
        while share > _LEAST_SHARE:
            problem = self._problem(network, now, share * wanted, seen)
            answer = solve(problem, restricted=self.restricted, enough=_patience())
            if isinstance(answer, Optimal | Incumbent):
                part = "" if share == 1 else f", of which {100 * share:.0f} % can be taken"
                proof = "best" if isinstance(answer, Optimal) else f"within {100 * answer.gap:.0f} % of best"
                why = (
                    f"planned for {wanted:.0f} t/s{part}: {1000 * answer.comes_to.response_time_s:.0f} ms, "
                    f"{answer.comes_to.cost:.3g} per unit of time ({proof})"
                )
                steps = self.restricted and not _same(answer.plan, now)
                return PlanMemory(dict(answer.plan), seen.at_s, level, why, steps)
            if isinstance(answer, TimedOut):
                return PlanMemory(dict(now), seen.at_s, level, f"no plan for {wanted:.0f} t/s found in time")
            share *= _LESS
        return PlanMemory(dict(now), seen.at_s, level, f"no plan for {wanted:.0f} t/s keeps the objective")

    def _problem(self, network: Network, now: Plan, rate: float, seen: ApplicationObservation) -> Problem:
        total = self.response_time + self.cost + self.downtime
        dearest = max(host.price for host in network.hosts) or 1.0
        streams = tuple(
            PlannedStream(
                origin=one.origin,
                target=one.target,
                rate=rate * self._reached[one.origin] * self.application.operator(one.origin).selectivity,
            )
            for one in self.application.streams
            if one.origin in self._reached and one.target in self._reached
        )
        operators = tuple(
            PlannedOperator(
                name=one.name,
                rate=rate * self._reached[one.name],
                queue=queue_as_known(one.service_time_s, one.service_scv, one.batching),
                state_bytes=float(one.state_bytes),
                max_replicas=one.max_replicas,
                allowed=self._allowed(one, now[one.name], seen),
            )
            for one in self.application.in_order
        )
        for one in operators:
            self._check_size(one, len(network.hosts))
        return Problem(
            operators=operators,
            streams=streams,
            network=network,
            goal=Goal(
                response_time=self.response_time / total,
                cost=self.cost / total,
                downtime=1 - (self.response_time + self.cost) / total,
                max_response_time_s=self._limit_s,
                max_cost=dearest * sum(one.max_replicas for one in operators),
                max_downtime_s=max(self.max_downtime_s, self.pause_s),
            ),
            current=now,
            engine=Engine(sync_s=self.pause_s),
            readings=Readings(speed_in_queue=True),
        )

    def _allowed(self, one: Operator, now: Deployment, seen: ApplicationObservation) -> Deployment | None:
        if one.pinned_to is not None:
            return (one.pinned_to,)
        if seen.nodes is None or one.max_replicas > 1:
            return None
        # A lone replica can be moved, but only to a node of its own type.
        kind = self._type_of(now[0], seen)
        return tuple(name for name, node in seen.nodes.items() if node.node_type == kind)

    @cached_property
    def _reached(self) -> dict[str, float]:
        return visits(self.application)

    @cached_property
    def _limit_s(self) -> float:
        """The tightest of all paths: a plan has one limit."""
        objective = without_delays(self.application, self.objective, self.delays_s)
        return min(objective.for_path(path) for path in self.application.paths)

    def _check_size(self, operator: PlannedOperator, hosts: int) -> None:
        count = comb(hosts + operator.max_replicas, operator.max_replicas) - 1
        if not self.restricted and count > _MOST_DEPLOYMENTS:
            raise InputError(
                f"edrp: operator '{operator.name}' has {count} deployments, {operator.max_replicas} replicas "
                f"on {hosts} hosts; up to {_MOST_DEPLOYMENTS} are searched: give fewer replicas or hosts, or "
                "choose redrp"
            )

    def _network(self, seen: ApplicationObservation) -> Network:
        if seen.nodes is None:
            most = float(sum(one.max_replicas for one in self.application.operators))
            hosts = tuple(
                Host(name=one.name, capacity=most, speedup=one.speedup, price=one.price)
                for one in self.node_types
            )
            return Network(hosts=hosts, delay_s=_nothing(len(hosts)), price=_nothing(len(hosts)))
        hosts = tuple(self._host(node) for node in seen.nodes.values())
        delay_s = _nothing(len(hosts))
        for a, one in enumerate(seen.nodes.values()):
            for b, other in enumerate(seen.nodes):
                if a != b:
                    delay_s[a, b] = one.delay_s.get(other, 0.0)
        return Network(hosts=hosts, delay_s=delay_s, price=_nothing(len(hosts)))

    def _host(self, node: NodeObservation) -> Host:
        node_type = self.node_types[node.node_type]
        return Host(
            name=node.node,
            capacity=float(node.free_slots + len(node.hosted)),
            speedup=node_type.speedup,
            price=node_type.price,
        )

    def _now(self, seen: ApplicationObservation) -> Plan:
        if seen.nodes is not None and seen.hosts is not None:
            order = {name: place for place, name in enumerate(seen.nodes)}
            return {name: tuple(sorted(hosts, key=order.__getitem__)) for name, hosts in seen.hosts.items()}
        return {
            one.operator: tuple(
                node_type.name
                for node_type, count in zip(self.node_types, one.replicas.counts, strict=True)
                for _ in range(count)
            )
            for one in seen.operators
        }

    def _changes(self, now: Plan, memory: PlanMemory, seen: ApplicationObservation) -> dict[str, Request]:
        """One change of each operator on the way to the plan, as far as there is room for all of them."""
        room = {name: node.free_slots for name, node in (seen.nodes or {}).items()}
        found: dict[str, Request] = {}
        waiting: list[str] = []
        for name, hosts in now.items():
            wanted = memory.plan.get(name, hosts)
            if sorted(hosts) == sorted(wanted):
                continue
            change = self._next_change(name, hosts, wanted, seen, room, memory.why)
            if change is None:
                waiting.append(name)
            else:
                found[name] = change
        if not found and waiting:  # each waits for the room of another
            found = self._way_out(waiting, now, memory, seen, room)
        return found

    def _next_change(
        self,
        name: str,
        now: Deployment,
        wanted: Deployment,
        seen: ApplicationObservation,
        room: dict[str, int],
        why: str,
    ) -> Request | None:
        """More replicas first, then moves, then fewer; None as long as there is no room."""
        replicas = next(one.replicas for one in seen.operators if one.operator == name)
        if seen.nodes is None:
            counts = Counter(wanted)
            target = Replicas(tuple(counts[one.name] for one in self.node_types))
            return request_of(name, replicas, Scale(target=target, score=1.0, reason=why))
        come = list((Counter(wanted) - Counter(now)).elements())
        leave = list((Counter(now) - Counter(wanted)).elements())
        most = self.application.operator(name).max_replicas
        there = [host for host in come if _take(room, host)]
        if come and leave:
            pair = self._alike(there, leave, seen)
            if pair is not None and len(come) <= len(leave):
                origin, target_host = pair
                _give_back(room, there, but=target_host)
                return Migrate(operator=name, origin=origin, target=target_host, score=1.0, reason=why)
            surplus = len(come) - len(leave) if len(come) > len(leave) else len(come)
            if replicas.total + surplus > most:  # no room for both: first some leave
                _give_back(room, there)
                goes = leave[: replicas.total - 1]
                return self._fewer(name, replicas, goes, seen, why) if goes else None
            _give_back(room, there[surplus:])
            there = there[:surplus]
        if there:
            target = replicas
            for host in there:
                target = target.changed(self._type_of(host, seen), +1)
            return ScaleOut(operator=name, target=target, nodes=tuple(there), score=1.0, reason=why)
        return self._fewer(name, replicas, leave, seen, why) if not come else None

    def _way_out(
        self,
        waiting: Sequence[str],
        now: Plan,
        memory: PlanMemory,
        seen: ApplicationObservation,
        room: Mapping[str, int],
    ) -> dict[str, Request]:
        """Of operators that want each other's places, one gives a place up or moves aside."""
        for name in waiting:
            leave = list((Counter(now[name]) - Counter(memory.plan[name])).elements())
            replicas = next(one.replicas for one in seen.operators if one.operator == name)
            if leave and replicas.total > 1:
                return {name: self._fewer(name, replicas, leave[:1], seen, memory.why)}
        for name in waiting:
            leave = list((Counter(now[name]) - Counter(memory.plan[name])).elements())
            free = [host for host, slots in room.items() if slots > 0]
            pair = self._alike(free, leave, seen)
            if pair is not None:
                origin, target = pair
                return {
                    name: Migrate(operator=name, origin=origin, target=target, score=1.0, reason=memory.why)
                }
        return {}

    def _fewer(
        self, name: str, replicas: Replicas, leave: Sequence[str], seen: ApplicationObservation, why: str
    ) -> ScaleIn:
        target = replicas
        for host in leave:
            target = target.changed(self._type_of(host, seen), -1)
        return ScaleIn(operator=name, target=target, nodes=tuple(leave), score=1.0, reason=why)

    def _alike(
        self, come: Sequence[str], leave: Sequence[str], seen: ApplicationObservation
    ) -> tuple[str, str] | None:
        """A host that is left and one that is come to, of one type: a replica can move between them."""
        pairs = ((a, b) for a in leave for b in come)
        return next((p for p in pairs if self._type_of(p[0], seen) == self._type_of(p[1], seen)), None)

    def _type_of(self, host: str, seen: ApplicationObservation) -> int:
        assert seen.nodes is not None
        return seen.nodes[host].node_type


def _is_seen(one: OperatorObservation | None) -> bool:
    return one is not None and one.utilisation is not None and one.utilisation >= 0


def _patience() -> Callable[[], bool]:
    """By the number of looks, not by the clock: a run has to replay."""
    looks = iter(range(_PATIENCE))
    return lambda: next(looks, None) is None


def _same(plan: Plan, other: Plan) -> bool:
    return all(sorted(hosts) == sorted(other[name]) for name, hosts in plan.items())


def _take(room: dict[str, int], host: str) -> bool:
    """A slot of a host for one more replica, if there is one."""
    if room.get(host, 0) < 1:
        return False
    room[host] -= 1
    return True


def _give_back(room: dict[str, int], hosts: Sequence[str], *, but: str | None = None) -> None:
    """Slots that were taken and are not needed, all or all but one."""
    left = list(hosts)
    if but is not None:
        left.remove(but)
    for host in left:
        room[host] += 1


def _top_of(level: int) -> float:
    """The highest load of a level."""
    return float(_LEVEL**level) if level > _NOTHING else 0.0


def _level(rate: float) -> int:
    return ceil(log(rate) / log(_LEVEL) - 1e-9) if rate > 0 else _NOTHING


def _nothing(hosts: int) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    return np.zeros((hosts, hosts))
