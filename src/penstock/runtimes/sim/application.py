"""A simulated application behind its managers: downtime, a buffer at the source, nodes with room and delays.

Slotted like `episode`, but a reconfiguration takes time. Pause-and-resume stops the whole
application: what arrives meanwhile waits at the source and is let in afterwards as fast as
the narrowest operator can take it. That buffer is a fluid queue; its mean wait over the slot
is added to the response time of the path. Inside, every operator is the queue of `perf`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import inf
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, frozen_floats
from penstock.domain.application import Application
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import Infrastructure
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, NodeObservation, OperatorObservation
from penstock.domain.request import Migrate, Request, ScaleIn, ScaleOut, Verdict
from penstock.perf.deployments import Deployments, Handles, cost_of
from penstock.perf.downtime import PauseAndResume
from penstock.perf.latency import check_objective
from penstock.perf.operator import throughput
from penstock.perf.queueing import QueueModel
from penstock.perf.traffic import visits
from penstock.runtimes.sim.ahead import MOST_AHEAD, Deployed, Slots, SlotsAhead, Station
from penstock.runtimes.sim.round_trips import RoundTrips, true_delays

# The source lets in no more than this share of what the narrowest operator can take: a queue
# fed at exactly its capacity would have no mean response time.
HIGHEST_LOAD = 0.98
_FEWEST_AHEAD = 4  # slots worked out after a change; twice as many every time that nothing has changed
_MORE_THAN_ANY = 1e12  # tuples/s: asks for an operator's capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorModel:
    """What is true of one operator."""

    queue: QueueModel
    deployments: Deployments
    first: Replicas
    delay_s: float = 0.0  # a constant part of its response time, a timer for instance


class PlayedSlot(NamedTuple):
    """What happened in one slot."""

    at_s: float  # its end
    rate: float  # at the source
    response_time_s: float
    violated: bool
    replicas: int
    by_type: tuple[int, ...]  # the same, per node type
    resources: float
    downtime_s: float
    reconfigured: bool  # whether a change was granted at its end
    migrations: int  # of the changes granted
    waiting: float  # tuples left at the source


@dataclass(frozen=True, slots=True)
class ColdStart:
    """Service times are a multiple of what they should be until the engine is warm."""

    seconds: float = 0.0
    factor: float = 1.0

    def __post_init__(self) -> None:
        if not (0 <= self.seconds < inf and 1 <= self.factor < inf):
            raise InputError(
                f"cold start of {self.seconds:g} s, {self.factor:g} times slower; some seconds, at least 1"
            )


@dataclass(slots=True, kw_only=True)
class _Operator:
    """One operator, and how it is deployed now."""

    name: str
    model: OperatorModel
    visits: float  # tuples that reach it per tuple of a source
    handles: Handles
    replicas: Replicas
    handle: int = 0
    capacity: float = inf  # tuples/s at the source
    resources: float = 0.0
    known: dict[int, tuple[float, float]] = field(default_factory=dict)  # both, of deployments there were

    def deploy(self, replicas: Replicas) -> None:
        self.replicas, self.handle = replicas, self.handles.of(replicas)
        if self.handle not in self.known:
            self.known[self.handle] = self._capacity(), cost_of(self.model.deployments, self.handle)
        self.capacity, self.resources = self.known[self.handle]

    def _capacity(self) -> float:
        if self.visits == 0:
            return inf
        queue, space = self.model.queue, self.model.deployments
        return throughput(queue, space, self.handle, _MORE_THAN_ANY) / self.visits


def _operator(name: str, model: OperatorModel, visits: float) -> _Operator:
    made = _Operator(
        name=name, model=model, visits=visits, handles=Handles(model.deployments), replicas=model.first
    )
    made.deploy(model.first)
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deployment:
    """All operators together: the same from one change to the next."""

    capacity: float  # tuples/s at the source that the narrowest operator can take
    replicas: int
    by_type: tuple[int, ...]
    resources: float
    network_s: Floats  # between the replicas of each path
    hosts: Mapping[str, tuple[str, ...]]  # operator -> nodes
    hosted: Mapping[str, tuple[str, ...]]  # node -> operators


@dataclass(slots=True)
class SimulatedApplication:
    """Plays a trace slot by slot: `observe`, then `apply` the verdict, which ends the slot."""

    application: Application
    objective: Objective
    models: Mapping[str, OperatorModel]
    rates: Floats  # tuples/s of every source
    protocol: PauseAndResume
    slot_s: float = 30.0
    cold_start: ColdStart = ColdStart()
    infrastructure: Infrastructure | None = None
    hosts: dict[str, list[str]] = field(default_factory=dict)  # operator -> nodes, where there are any
    round_trips: RoundTrips | None = None  # how delays are estimated; managers know the true ones without
    _played: list[PlayedSlot] = field(default_factory=list)
    _index: int = 0
    _waiting: float = 0.0  # tuples, before the slots ahead
    _pause_s: float = 0.0  # that the slots ahead begin with
    _delays: dict[str, dict[str, float]] = field(default_factory=dict)
    _operators: list[_Operator] = field(default_factory=list)
    _one_limit: bool = True  # for all paths
    _deployment: _Deployment | None = None
    _maker: SlotsAhead = field(init=False)
    _ahead: Slots | None = None
    _look_ahead: int = _FEWEST_AHEAD  # slots that are worked out next

    def __post_init__(self) -> None:
        for operator in self.application.operators:
            if operator.name not in self.models:
                raise InputError(f"operator '{operator.name}': no model given")
        check_objective(
            self.application,
            self.objective,
            fastest=max(float(model.deployments.speedup.max()) for model in self.models.values()),
            delays_s={name: model.delay_s for name, model in self.models.items()},
        )
        reaching = visits(self.application)
        names = [operator.name for operator in self.application.operators]
        self._operators = [_operator(name, self.models[name], reaching[name]) for name in names]
        limits_s = [self.objective.for_path(path) for path in self.application.paths]
        self._one_limit = len(set(limits_s)) == 1
        self._maker = SlotsAhead(
            [
                Station(one.model.queue, one.model.deployments, one.visits, one.model.delay_s)
                for one in self._operators
            ],
            [[names.index(name) for name in path] for path in self.application.paths],
            limits_s,
            self.slot_s,
        )
        if self.infrastructure is not None:
            self._check_network(self.infrastructure)
            self._delays = true_delays(self.infrastructure)
            self.hosts = self.hosts or _spread(self.replicas, self.infrastructure)

    def _check_network(self, infrastructure: Infrastructure) -> None:
        linked = {frozenset((link.a, link.b)) for link in infrastructure.links}
        for one, other in combinations((node.name for node in infrastructure.nodes), 2):
            if frozenset((one, other)) not in linked:  # an unknown delay is not 0
                raise InputError(f"nodes '{one}' and '{other}': no link between them, so no delay is known")
        for operator in self.application.operators:
            if operator.pinned_to is not None:
                raise InputError(
                    f"operator '{operator.name}': pinned to '{operator.pinned_to}'; managers place freely"
                )

    @property
    def replicas(self) -> dict[str, Replicas]:
        return {one.name: one.replicas for one in self._operators}

    @property
    def finished(self) -> bool:
        return self._index == self.rates.size

    @property
    def at_s(self) -> float:
        """The end of the current slot."""
        return (self._index + 1) * self.slot_s

    def observe(self) -> ApplicationObservation:
        at_s, (ahead, now) = self.at_s, self._now()
        ran = ahead.downtime_s[now] < self.slot_s  # where nothing ran nothing was measured
        operators = [
            OperatorObservation(
                one.name,
                at_s,
                one.replicas,
                arrival_rate=ahead.inside[now] * one.visits if ran else None,
                response_time_s=times_s[now] if ran else None,
                utilisation=loads[now] if ran else None,
                utilisation_by_replica=tuple(busy[now]) if ran else None,
            )
            for one, times_s, loads, busy in zip(
                self._operators, ahead.times_s, ahead.loads, ahead.busy, strict=True
            )
        ]
        return ApplicationObservation(
            at_s=at_s,
            source_rate=ahead.rates[now],
            response_time_s=ahead.response_time_s[now],
            strictest_s=None if self._one_limit else ahead.strictest_s[now],
            operators=tuple(operators),
            nodes=None if self.infrastructure is None else self.observe_nodes(),
            hosts=self._as_deployed().hosts or None,
        )

    def observe_nodes(self) -> dict[str, NodeObservation]:
        """Every node: how busy its replicas keep it, what it hosts, how far the others are."""
        if self.infrastructure is None:
            return {}
        at_s, deployed, (ahead, now) = self.at_s, self._as_deployed(), self._now()
        types = [node_type.name for node_type in self.infrastructure.node_types]
        busy = dict.fromkeys(deployed.hosted, 0.0)
        for one, loads in zip(self._operators, ahead.loads, strict=True):
            for host in deployed.hosts[one.name]:
                busy[host] += loads[now]
        return {
            (name := node.name): NodeObservation(
                node=name,
                node_type=types.index(node.node_type),
                at_s=at_s,
                utilisation=busy[name] / node.slots,
                hosted=(hosted := deployed.hosted[name]),
                free_slots=node.slots - len(hosted),
                delay_s=self._delays[name] if self.round_trips is None else self.round_trips.from_node(name),
            )
            for node in self.infrastructure.nodes
        }

    def apply(self, verdict: Verdict) -> None:
        """End the slot, then change what was granted, which pauses the next one."""
        granted, (ahead, now) = verdict.granted, self._now()
        self._index += 1
        if granted or now + 1 == len(ahead.rates):
            self._account_for()
            self._waiting, self._pause_s, self._ahead = ahead.waiting[now], ahead.pause_left_s[now], None
            self._look_ahead = _FEWEST_AHEAD if granted else min(2 * self._look_ahead, MOST_AHEAD)
        if granted:
            migrations = sum(isinstance(request, Migrate) for request in granted)
            self._played[-1] = self._played[-1]._replace(reconfigured=True, migrations=migrations)
            changed = {self.application.operator(r.operator): self._change(r) for r in granted}
            self._pause_s += self.protocol.seconds(changed)
        if self.round_trips is not None:
            self.round_trips.measure()

    @property
    def played(self) -> list[PlayedSlot]:
        """Every slot that has ended."""
        self._account_for()
        return self._played

    def _account_for(self) -> None:
        """Write down the slots that have ended since the last time."""
        ahead, deployed = self._ahead, self._as_deployed()
        if ahead is None:
            return
        for slot in range(len(self._played) - ahead.first, self._index - ahead.first):
            self._played.append(
                PlayedSlot(
                    at_s=(ahead.first + slot + 1) * self.slot_s,
                    rate=ahead.rates[slot],
                    response_time_s=ahead.response_time_s[slot],
                    violated=ahead.late[slot],
                    replicas=deployed.replicas,
                    by_type=deployed.by_type,
                    resources=deployed.resources,
                    downtime_s=ahead.downtime_s[slot],
                    reconfigured=False,
                    migrations=0,
                    waiting=ahead.waiting[slot],
                )
            )

    def _change(self, request: Request) -> tuple[int, int]:
        """Carry a request out; returns replicas before and after."""
        operator = next(one for one in self._operators if one.name == request.operator)
        before = operator.replicas.total
        self._deployment = None
        match request:
            case Migrate():
                self.hosts[request.operator].remove(request.origin)
                self.hosts[request.operator].append(request.target)
            case ScaleOut():
                operator.deploy(request.target)
                if self.infrastructure is not None:
                    self.hosts[request.operator] += request.nodes
            case ScaleIn():
                operator.deploy(request.target)
                for node in request.nodes if self.infrastructure is not None else ():
                    self.hosts[request.operator].remove(node)
        return before, operator.replicas.total

    def _now(self) -> tuple[Slots, int]:
        """Slots ahead, and which of them is the current one."""
        if self._ahead is None:
            self._ahead = self._work_out()
        return self._ahead, self._index - self._ahead.first

    def _as_deployed(self) -> _Deployment:
        if self._deployment is None:
            operators = self._operators
            self._deployment = _Deployment(
                capacity=min(one.capacity for one in operators),
                replicas=sum(one.replicas.total for one in operators),
                by_type=tuple(map(sum, zip(*(one.replicas.counts for one in operators), strict=True))),
                resources=sum(one.resources for one in operators),
                network_s=frozen_floats([self._network(path) for path in self.application.paths]),
                hosts={name: tuple(nodes) for name, nodes in self.hosts.items()},
                hosted=self._hosted(),
            )
        return self._deployment

    def _hosted(self) -> dict[str, tuple[str, ...]]:
        nodes = () if self.infrastructure is None else self.infrastructure.nodes
        return {
            node.name: tuple(
                one.name for one in self._operators for host in self.hosts[one.name] if host == node.name
            )
            for node in nodes
        }

    def _work_out(self) -> Slots:
        slow, deployed = self._slow(), self._as_deployed()
        return self._maker.work_out(
            Deployed(
                handles=tuple([one.handle for one in self._operators]),
                replicas=tuple([one.replicas.total for one in self._operators]),
                capacity=HIGHEST_LOAD * deployed.capacity / slow,
                network_s=deployed.network_s,
                slow=slow,
            ),
            self._index,
            self.rates[self._index : self._index + (1 if slow > 1 else self._look_ahead)],
            waiting=self._waiting,
            pause_s=self._pause_s,
        )

    def _slow(self) -> float:
        return self.cold_start.factor if self.at_s <= self.cold_start.seconds else 1.0

    def _network(self, path: tuple[str, ...]) -> float:
        """Mean delay between the replicas of neighbouring operators on a path."""
        if self.infrastructure is None:
            return 0.0
        total = 0.0
        for origin, target in pairwise(path):
            delays = [
                0.0 if a == b else self._delays[a][b] for a in self.hosts[origin] for b in self.hosts[target]
            ]
            total += float(np.mean(delays))
        return total


def _spread(replicas: Mapping[str, Replicas], infrastructure: Infrastructure) -> dict[str, list[str]]:
    """Replicas on nodes of their type, in turn, as long as there is room."""
    room = {node.name: node.slots for node in infrastructure.nodes}
    placed: dict[str, list[str]] = {}
    for operator, counts in replicas.items():
        placed[operator] = []
        for node_type, count in zip(infrastructure.node_types, counts.counts, strict=True):
            for _ in range(count):
                fitting = [
                    n.name for n in infrastructure.nodes if n.node_type == node_type.name and room[n.name] > 0
                ]
                if not fitting:
                    raise InputError(
                        f"operator '{operator}': no node of type '{node_type.name}' has room left"
                    )
                node = max(fitting, key=lambda name: room[name])
                room[node] -= 1
                placed[operator].append(node)
    return placed
