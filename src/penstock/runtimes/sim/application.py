"""A simulated application behind its managers: downtime, a buffer at the source, nodes with room and delays.

Slotted like `episode`, but a reconfiguration takes time. Pause-and-resume stops the whole
application: what arrives meanwhile waits at the source and is let in afterwards as fast as
the narrowest operator can take it. That buffer is a fluid queue; its mean wait over the slot
is added to the response time of the path. Inside, every operator is the queue of `perf`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from math import inf
from operator import gt
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, compiled
from penstock.direct_calls import machine_code
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
from penstock.perf.operator import response_time, throughput, utilisation, utilisation_by_replica
from penstock.perf.queueing import QueueModel
from penstock.perf.traffic import visits
from penstock.runtimes.sim.round_trips import RoundTrips, true_delays

# The source lets in no more than this share of what the narrowest operator can take: a queue
# fed at exactly its capacity would have no mean response time.
HIGHEST_LOAD = 0.98
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


@compiled
def _behaviour(queue: QueueModel, deployments: Deployments, handle: int, rate: float) -> tuple[float, float]:
    """Response time and utilisation."""
    return response_time(queue, deployments, handle, rate), utilisation(queue, deployments, handle, rate)


@dataclass(slots=True, kw_only=True)
class _Station:
    """One operator, and how it is deployed now."""

    name: str
    model: OperatorModel
    visits: float  # tuples that reach it per tuple of a source
    handles: Handles
    behaviour: Callable[[QueueModel, Deployments, int, float], tuple[float, float]]
    replicas: Replicas
    handle: int = 0
    capacity: float = inf  # tuples/s at the source
    resources: float = 0.0
    mixed: bool = False  # replicas on nodes of several speeds: not equally busy

    def deploy(self, replicas: Replicas) -> None:
        queue, space = self.model.queue, self.model.deployments
        self.replicas, self.handle = replicas, self.handles.of(replicas)
        self.resources = cost_of(space, self.handle)
        self.mixed = sum(count > 0 for count in replicas.counts) > 1
        if self.visits > 0:
            self.capacity = throughput(queue, space, self.handle, _MORE_THAN_ANY) / self.visits


def _station(name: str, model: OperatorModel, visits: float) -> _Station:
    made = _Station(
        name=name,
        model=model,
        visits=visits,
        handles=Handles(model.deployments),
        behaviour=machine_code(_behaviour, model.queue, model.deployments, 0, 0.0),
        replicas=model.first,
    )
    made.deploy(model.first)
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deployed:
    """All operators together: the same from one change to the next."""

    capacity: float  # tuples/s at the source that the narrowest operator can take
    replicas: int
    by_type: tuple[int, ...]
    resources: float
    network_s: tuple[float, ...]  # between the replicas of each path
    hosts: Mapping[str, tuple[str, ...]]  # operator -> nodes
    hosted: Mapping[str, tuple[str, ...]]  # node -> operators


class _Slot(NamedTuple):
    """What is true of the current slot, worked out once."""

    left: float  # tuples still waiting at its end
    inside: float  # tuples/s let in while running
    times: list[float]  # response time of each operator
    loads: list[float]
    by_replica: list[tuple[float, ...]]  # loads
    paths: list[float]  # response time of each


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
    played: list[PlayedSlot] = field(default_factory=list)
    _index: int = 0
    _waiting: float = 0.0
    _pause_s: float = 0.0  # of the current slot
    _pause_left_s: float = 0.0  # that later slots begin with
    _delays: dict[str, dict[str, float]] = field(default_factory=dict)
    _stations: list[_Station] = field(default_factory=list)  # in the order of the operators
    _paths: list[list[int]] = field(default_factory=list)  # the same, as indices
    _limits_s: tuple[float, ...] = ()  # of each path
    _one_limit: bool = True  # for all of them
    _deployed: _Deployed | None = None
    _slot: _Slot | None = None

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
        self._stations = [_station(name, self.models[name], reaching[name]) for name in names]
        self._paths = [[names.index(name) for name in path] for path in self.application.paths]
        self._limits_s = tuple(self.objective.for_path(path) for path in self.application.paths)
        self._one_limit = len(set(self._limits_s)) == 1
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
        return {station.name: station.replicas for station in self._stations}

    @property
    def finished(self) -> bool:
        return self._index == self.rates.size

    @property
    def at_s(self) -> float:
        """The end of the current slot."""
        return (self._index + 1) * self.slot_s

    def observe(self) -> ApplicationObservation:
        now, at_s = self._now(), self.at_s
        ran = self._pause_s < self.slot_s  # where nothing ran nothing was measured
        operators = [
            OperatorObservation(
                operator=station.name,
                at_s=at_s,
                replicas=station.replicas,
                arrival_rate=now.inside * station.visits if ran else None,
                response_time_s=time if ran else None,
                utilisation=load if ran else None,
                utilisation_by_replica=each if ran else None,
            )
            for station, time, load, each in zip(
                self._stations, now.times, now.loads, now.by_replica, strict=True
            )
        ]
        return ApplicationObservation(
            at_s=at_s,
            source_rate=float(self.rates[self._index]),
            response_time_s=max(now.paths),
            strictest_s=self._strictest(now.paths),
            operators=tuple(operators),
            nodes=None if self.infrastructure is None else self.observe_nodes(),
            hosts=self._as_deployed().hosts or None,
        )

    def _strictest(self, paths: list[float]) -> float | None:
        if self._one_limit:
            return None
        tightest = min(self._limits_s)
        return max(time * tightest / limit for time, limit in zip(paths, self._limits_s, strict=True))

    def observe_nodes(self) -> dict[str, NodeObservation]:
        """Every node: how busy its replicas keep it, what it hosts, how far the others are."""
        if self.infrastructure is None:
            return {}
        at_s, deployed = self.at_s, self._as_deployed()
        types = [node_type.name for node_type in self.infrastructure.node_types]
        busy = dict.fromkeys(deployed.hosted, 0.0)
        for station, load in zip(self._stations, self._now().loads, strict=True):
            for host in deployed.hosts[station.name]:
                busy[host] += load
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
        """End the slot: account for it, then change what was granted, which pauses the next one."""
        now, deployed = self._now(), self._as_deployed()
        self.played.append(
            PlayedSlot(
                at_s=self.at_s,
                rate=float(self.rates[self._index]),
                response_time_s=max(now.paths),
                violated=any(map(gt, now.paths, self._limits_s)),
                replicas=deployed.replicas,
                by_type=deployed.by_type,
                resources=deployed.resources,
                downtime_s=self._pause_s,
                reconfigured=bool(verdict.granted),
                migrations=sum([isinstance(request, Migrate) for request in verdict.granted]),
                waiting=now.left,
            )
        )
        self._waiting = now.left
        pause_s = self._pause_left_s
        if verdict.granted:
            changed = {self.application.operator(r.operator): self._change(r) for r in verdict.granted}
            pause_s += self.protocol.seconds(changed)
        self._pause_s = min(pause_s, self.slot_s)
        self._pause_left_s = pause_s - self._pause_s
        if self.round_trips is not None:
            self.round_trips.measure()
        self._index += 1
        self._slot = None

    def _change(self, request: Request) -> tuple[int, int]:
        """Carry a request out; returns replicas before and after."""
        station = next(one for one in self._stations if one.name == request.operator)
        before = station.replicas.total
        self._deployed = None
        match request:
            case Migrate():
                self.hosts[request.operator].remove(request.origin)
                self.hosts[request.operator].append(request.target)
            case ScaleOut():
                station.deploy(request.target)
                if self.infrastructure is not None:
                    self.hosts[request.operator] += request.nodes
            case ScaleIn():
                station.deploy(request.target)
                for node in request.nodes if self.infrastructure is not None else ():
                    self.hosts[request.operator].remove(node)
        return before, station.replicas.total

    def _now(self) -> _Slot:
        if self._slot is None:
            self._slot = self._work_out()
        return self._slot

    def _as_deployed(self) -> _Deployed:
        if self._deployed is None:
            stations = self._stations
            self._deployed = _Deployed(
                capacity=min(station.capacity for station in stations),
                replicas=sum(station.replicas.total for station in stations),
                by_type=tuple(map(sum, zip(*(one.replicas.counts for one in stations), strict=True))),
                resources=sum(station.resources for station in stations),
                network_s=tuple(map(self._network, self.application.paths)),
                hosts={name: tuple(nodes) for name, nodes in self.hosts.items()},
                hosted=self._hosted(),
            )
        return self._deployed

    def _hosted(self) -> dict[str, tuple[str, ...]]:
        nodes = () if self.infrastructure is None else self.infrastructure.nodes
        return {
            node.name: tuple(
                one.name for one in self._stations for host in self.hosts[one.name] if host == node.name
            )
            for node in nodes
        }

    def _work_out(self) -> _Slot:
        rate, slow, deployed = float(self.rates[self._index]), self._slow(), self._as_deployed()
        wait, left = buffered(
            rate=rate,
            waiting=self._waiting,
            pause_s=self._pause_s,
            slot_s=self.slot_s,
            capacity=HIGHEST_LOAD * deployed.capacity / slow,
            pause_left_s=self._pause_left_s,
        )
        running = self.slot_s - self._pause_s
        inside = (self._waiting + rate * self.slot_s - left) / running if running > 0 else 0.0
        times: list[float] = []
        loads: list[float] = []
        by_replica: list[tuple[float, ...]] = []
        for station in self._stations:
            model = station.model
            arriving = slow * (inside * station.visits)
            # A queue whose service takes f times as long is the same queue on a clock f times as slow.
            time, load = station.behaviour(model.queue, model.deployments, station.handle, arriving)
            times.append(slow * time + model.delay_s)
            loads.append(load)
            by_replica.append(
                utilisation_by_replica(model.queue, model.deployments, station.handle, arriving)
                if station.mixed
                else (load,) * station.replicas.total
            )
        paths = [
            wait + sum([times[operator] for operator in path]) + network_s
            for path, network_s in zip(self._paths, deployed.network_s, strict=True)
        ]
        return _Slot(left=left, inside=inside, times=times, loads=loads, by_replica=by_replica, paths=paths)

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


def buffered(
    *,
    rate: float,
    waiting: float,
    pause_s: float,
    slot_s: float,
    capacity: float,
    pause_left_s: float = 0.0,
) -> tuple[float, float]:
    """A fluid buffer over one slot that begins with a pause: mean wait, and what is left at the end.

    The wait is that of tuples that come in this slot: until the pause is over, and until what came
    before them has been let in. (Little's law would count what came in slots before.)
    """
    running = slot_s - pause_s
    after_pause = waiting + rate * pause_s
    content = (waiting + after_pause) / 2 * pause_s  # integrated over the slot
    draining = capacity - rate
    if draining > 0 and after_pause <= draining * running:
        content += after_pause * (after_pause / draining) / 2
        left = 0.0
    else:
        left = after_pause - draining * running
        content += (after_pause + left) / 2 * running
    return pause_left_s + (pause_s**2 / 2 + content / capacity) / slot_s, left


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
