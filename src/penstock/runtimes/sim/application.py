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

import numpy as np

from penstock.compiled import Floats
from penstock.domain.application import Application
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import Infrastructure
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, NodeObservation, OperatorObservation
from penstock.domain.request import Migrate, Request, ScaleIn, ScaleOut, Verdict
from penstock.perf.deployments import Deployments, cost_of, handle_of
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedSlot:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """What is true of the current slot, worked out once."""

    wait_s: float  # at the source
    left: float  # tuples still waiting at its end
    inside: float  # tuples/s let in while running
    times: Mapping[str, float]  # response time of each operator
    loads: Mapping[str, float]
    loads_by_replica: Mapping[str, tuple[float, ...]]
    paths: Mapping[tuple[str, ...], float]


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
    _replicas: dict[str, Replicas] = field(default_factory=dict)
    _handles: dict[str, int] = field(default_factory=dict)
    _visits: dict[str, float] = field(default_factory=dict)
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
        self._visits = visits(self.application)
        for name, model in self.models.items():
            self._deploy(name, model.first)
        if self.infrastructure is not None:
            self._check_network(self.infrastructure)
            self._delays = true_delays(self.infrastructure)
            self.hosts = self.hosts or _spread(self._replicas, self.infrastructure)

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
    def finished(self) -> bool:
        return self._index == self.rates.size

    @property
    def at_s(self) -> float:
        """The end of the current slot."""
        return (self._index + 1) * self.slot_s

    def observe(self) -> ApplicationObservation:
        now = self._now()
        ran = self._pause_s < self.slot_s  # where nothing ran nothing was measured
        operators = tuple(
            OperatorObservation(
                operator=operator.name,
                at_s=self.at_s,
                replicas=self._replicas[operator.name],
                arrival_rate=now.inside * self._visits[operator.name] if ran else None,
                response_time_s=now.times[operator.name] if ran else None,
                utilisation=now.loads[operator.name] if ran else None,
                utilisation_by_replica=now.loads_by_replica[operator.name] if ran else None,
            )
            for operator in self.application.operators
        )
        limits = {path: self.objective.for_path(path) for path in now.paths}
        tightest = min(limits.values())
        return ApplicationObservation(
            at_s=self.at_s,
            source_rate=float(self.rates[self._index]),
            response_time_s=max(now.paths.values()),
            strictest_s=max(time * tightest / limits[path] for path, time in now.paths.items())
            if len(set(limits.values())) > 1
            else None,
            operators=operators,
            nodes=self.observe_nodes() or None,
            hosts={name: tuple(nodes) for name, nodes in self.hosts.items()} or None,
        )

    def observe_nodes(self) -> dict[str, NodeObservation]:
        """Every node: how busy its replicas keep it, what it hosts, how far the others are."""
        if self.infrastructure is None:
            return {}
        types = [node_type.name for node_type in self.infrastructure.node_types]
        hosted: dict[str, list[str]] = {node.name: [] for node in self.infrastructure.nodes}
        busy = dict.fromkeys(hosted, 0.0)
        for name, load in self._now().loads.items():
            for node in self.hosts[name]:
                hosted[node].append(name)
                busy[node] += load
        return {
            node.name: NodeObservation(
                node=node.name,
                node_type=types.index(node.node_type),
                at_s=self.at_s,
                utilisation=busy[node.name] / node.slots,
                hosted=tuple(hosted[node.name]),
                free_slots=node.slots - len(hosted[node.name]),
                delay_s=self._delays[node.name]
                if self.round_trips is None
                else self.round_trips.from_node(node.name),
            )
            for node in self.infrastructure.nodes
        }

    def apply(self, verdict: Verdict) -> None:
        """End the slot: account for it, then change what was granted, which pauses the next one."""
        now = self._now()
        self.played.append(
            PlayedSlot(
                at_s=self.at_s,
                rate=float(self.rates[self._index]),
                response_time_s=max(now.paths.values()),
                violated=any(time > self.objective.for_path(path) for path, time in now.paths.items()),
                replicas=sum(replicas.total for replicas in self._replicas.values()),
                by_type=tuple(map(sum, zip(*(r.counts for r in self._replicas.values()), strict=True))),
                resources=sum(cost_of(self.models[n].deployments, h) for n, h in self._handles.items()),
                downtime_s=self._pause_s,
                reconfigured=bool(verdict.granted),
                migrations=sum(isinstance(request, Migrate) for request in verdict.granted),
                waiting=now.left,
            )
        )
        self._waiting = now.left
        changed = {self.application.operator(r.operator): self._change(r) for r in verdict.granted}
        pause_s = self._pause_left_s + self.protocol.seconds(changed)
        self._pause_s = min(pause_s, self.slot_s)
        self._pause_left_s = pause_s - self._pause_s
        if self.round_trips is not None:
            self.round_trips.measure()
        self._index += 1
        self._slot = None

    def _deploy(self, operator: str, replicas: Replicas) -> None:
        self._replicas[operator] = replicas
        self._handles[operator] = handle_of(self.models[operator].deployments, replicas)

    def _change(self, request: Request) -> tuple[int, int]:
        """Carry a request out; returns replicas before and after."""
        before = self._replicas[request.operator].total
        match request:
            case Migrate():
                self.hosts[request.operator].remove(request.origin)
                self.hosts[request.operator].append(request.target)
            case ScaleOut():
                self._deploy(request.operator, request.target)
                if self.infrastructure is not None:
                    self.hosts[request.operator] += request.nodes
            case ScaleIn():
                self._deploy(request.operator, request.target)
                for node in request.nodes if self.infrastructure is not None else ():
                    self.hosts[request.operator].remove(node)
        return before, self._replicas[request.operator].total

    def _now(self) -> _Slot:
        if self._slot is None:
            self._slot = self._work_out()
        return self._slot

    def _work_out(self) -> _Slot:
        rate = float(self.rates[self._index])
        wait, left = buffered(
            rate=rate,
            waiting=self._waiting,
            pause_s=self._pause_s,
            slot_s=self.slot_s,
            capacity=self._capacity(),
            pause_left_s=self._pause_left_s,
        )
        running = self.slot_s - self._pause_s
        inside = (self._waiting + rate * self.slot_s - left) / running if running > 0 else 0.0
        slow = self._slow()
        times: dict[str, float] = {}
        loads: dict[str, float] = {}
        loads_by_replica: dict[str, tuple[float, ...]] = {}
        for name, model in self.models.items():
            reaching = inside * self._visits[name]
            handle = self._handles[name]
            # A queue whose service takes f times as long is the same queue on a clock f times as slow.
            times[name] = (
                slow * response_time(model.queue, model.deployments, handle, slow * reaching) + model.delay_s
            )
            loads[name] = utilisation(model.queue, model.deployments, handle, slow * reaching)
            loads_by_replica[name] = utilisation_by_replica(
                model.queue, model.deployments, handle, slow * reaching
            )
        paths = {
            path: wait + sum(times[name] for name in path) + self._network(path)
            for path in self.application.paths
        }
        return _Slot(
            wait_s=wait,
            left=left,
            inside=inside,
            times=times,
            loads=loads,
            loads_by_replica=loads_by_replica,
            paths=paths,
        )

    def _capacity(self) -> float:
        """Tuples/s at the source that the narrowest operator can take."""
        limits = [
            throughput(model.queue, model.deployments, self._handles[name], _MORE_THAN_ANY)
            / self._visits[name]
            for name, model in self.models.items()
            if self._visits[name] > 0
        ]
        return HIGHEST_LOAD * min(limits) / self._slow()

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

    The wait is that of who comes in this slot: until the pause is over, and until what stands
    before him has been let in. (Little's law would charge him with who came in slots before.)
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
