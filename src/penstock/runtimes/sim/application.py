"""A simulated application behind its managers: downtime, a buffer at the source, nodes with room and delays.

Slotted like `episode`, but a reconfiguration takes time. Pause-and-resume stops the whole
application: what arrives meanwhile waits at the source and is let in afterwards as fast as
the narrowest operator can take it. That buffer is a fluid queue; its mean wait over the slot
is added to the response time of the path. Inside, every operator is the queue of `perf`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from penstock.compiled import Floats
from penstock.domain.application import Application, Operator
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import Infrastructure
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, NodeObservation, OperatorObservation
from penstock.domain.request import Migrate, Request, ScaleIn, ScaleOut, Verdict
from penstock.perf.deployments import Deployments, cost_of, handle_of, replicas_of
from penstock.perf.downtime import PauseAndResume
from penstock.perf.operator import response_time, throughput, utilisation
from penstock.perf.queueing import QueueModel

# The source lets in no more than this share of what the narrowest operator can take: a queue
# fed at exactly its capacity would have no mean response time.
HIGHEST_LOAD = 0.98


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
    resources: float
    downtime_s: float
    reconfigured: bool  # whether a change was granted at its end
    waiting: float  # tuples left at the source


@dataclass(slots=True)
class SimulatedApplication:
    """Plays a trace slot by slot: `observe`, then `apply` the verdict, which ends the slot."""

    application: Application
    objective: Objective
    models: Mapping[str, OperatorModel]
    rates: Floats  # tuples/s at the source
    protocol: PauseAndResume
    slot_s: float = 30.0
    infrastructure: Infrastructure | None = None
    hosts: dict[str, list[str]] = field(default_factory=dict)  # operator -> nodes, where there are any
    played: list[PlayedSlot] = field(default_factory=list)
    _slot: int = 0
    _waiting: float = 0.0
    _pause_s: float = 0.0
    _replicas: dict[str, Replicas] = field(default_factory=dict)
    _visits: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for operator in self.application.operators:
            if operator.name not in self.models:
                raise InputError(f"operator '{operator.name}': no model given")
        self._replicas = {name: model.first for name, model in self.models.items()}
        self._visits = visits(self.application)
        if self.infrastructure is not None and not self.hosts:
            self.hosts = _spread(self._replicas, self.infrastructure)

    @property
    def finished(self) -> bool:
        return self._slot == self.rates.size

    @property
    def at_s(self) -> float:
        return (self._slot + 1) * self.slot_s

    def observe(self) -> ApplicationObservation:
        inside = self._inside_rate()
        operators = tuple(
            OperatorObservation(
                operator=operator.name,
                at_s=self.at_s,
                replicas=self._replicas[operator.name],
                arrival_rate=inside * self._visits[operator.name],
                response_time_s=self._operator_time(operator, inside),
                utilisation=self._operator_load(operator, inside),
            )
            for operator in self.application.operators
        )
        return ApplicationObservation(
            at_s=self.at_s, response_time_s=max(self._path_times().values()), operators=operators
        )

    def observe_nodes(self) -> dict[str, NodeObservation]:
        """Every node: how busy its replicas keep it, what it hosts, how far the others are."""
        if self.infrastructure is None:
            return {}
        inside = self._inside_rate()
        types = [node_type.name for node_type in self.infrastructure.node_types]
        hosted: dict[str, list[str]] = {node.name: [] for node in self.infrastructure.nodes}
        busy = dict.fromkeys(hosted, 0.0)
        for operator in self.application.operators:
            for node in self.hosts[operator.name]:
                hosted[node].append(operator.name)
                busy[node] += self._operator_load(operator, inside)
        return {
            node.name: NodeObservation(
                node=node.name,
                node_type=types.index(node.node_type),
                at_s=self.at_s,
                utilisation=busy[node.name] / node.slots,
                hosted=tuple(hosted[node.name]),
                free_slots=node.slots - len(hosted[node.name]),
                delay_s=self._delays_from(node.name),
            )
            for node in self.infrastructure.nodes
        }

    def apply(self, verdict: Verdict) -> None:
        """End the slot: account for it, then change what was granted, which pauses the next one."""
        late = any(time > self.objective.for_path(path) for path, time in self._path_times().items())
        handles = {
            name: handle_of(self.models[name].deployments, now) for name, now in self._replicas.items()
        }
        self.played.append(
            PlayedSlot(
                at_s=self.at_s,
                rate=float(self.rates[self._slot]),
                response_time_s=max(self._path_times().values()),
                violated=late,
                replicas=sum(replicas_of(self.models[n].deployments, h) for n, h in handles.items()),
                resources=sum(cost_of(self.models[n].deployments, h) for n, h in handles.items()),
                downtime_s=self._pause_s,
                reconfigured=bool(verdict.granted),
                waiting=self._buffer()[1],
            )
        )
        self._waiting = self._buffer()[1]
        changed = {request.operator: self._change(request) for request in verdict.granted}
        by_operator = {self.application.operator(name): counts for name, counts in changed.items()}
        self._pause_s = min(self.protocol.seconds(by_operator), self.slot_s)
        self._slot += 1

    def _change(self, request: Request) -> tuple[int, int]:
        """Carry a request out; returns replicas before and after."""
        before = self._replicas[request.operator].total
        match request:
            case Migrate():
                self.hosts[request.operator].remove(request.origin)
                self.hosts[request.operator].append(request.target)
            case ScaleOut() | ScaleIn():
                self._replicas[request.operator] = request.target
                if self.infrastructure is not None:
                    places = self.hosts[request.operator]
                    for node in request.nodes:
                        places.append(node) if isinstance(request, ScaleOut) else places.remove(node)
        return before, self._replicas[request.operator].total

    # --- one slot -------------------------------------------------------------------------

    def _capacity(self) -> float:
        """Tuples/s at the source that the narrowest operator can take."""
        limits = [
            throughput(
                model.queue, model.deployments, handle_of(model.deployments, self._replicas[name]), 1e12
            )
            / self._visits[name]
            for name, model in self.models.items()
            if self._visits[name] > 0
        ]
        return HIGHEST_LOAD * min(limits)

    def _buffer(self) -> tuple[float, float]:
        """Mean wait at the source over the slot, and tuples still waiting at its end."""
        return buffered(
            rate=float(self.rates[self._slot]),
            waiting=self._waiting,
            pause_s=self._pause_s,
            slot_s=self.slot_s,
            capacity=self._capacity(),
        )

    def _inside_rate(self) -> float:
        """Tuples/s let in while the application runs; the source's own rate when it never stopped."""
        running = self.slot_s - self._pause_s
        if running <= 0:
            return 0.0
        arrived = float(self.rates[self._slot]) * self.slot_s
        return (self._waiting + arrived - self._buffer()[1]) / running

    def _operator_time(self, operator: Operator, inside: float) -> float:
        model = self.models[operator.name]
        handle = handle_of(model.deployments, self._replicas[operator.name])
        return (
            response_time(model.queue, model.deployments, handle, inside * self._visits[operator.name])
            + model.delay_s
        )

    def _operator_load(self, operator: Operator, inside: float) -> float:
        model = self.models[operator.name]
        handle = handle_of(model.deployments, self._replicas[operator.name])
        return utilisation(model.queue, model.deployments, handle, inside * self._visits[operator.name])

    def _path_times(self) -> dict[tuple[str, ...], float]:
        inside, wait = self._inside_rate(), self._buffer()[0]
        times = {o.name: self._operator_time(o, inside) for o in self.application.operators}
        return {
            path: wait + sum(times[name] for name in path) + self._network(path)
            for path in self.application.paths
        }

    def _network(self, path: tuple[str, ...]) -> float:
        """Mean delay between the replicas of neighbouring operators on a path."""
        if self.infrastructure is None:
            return 0.0
        total = 0.0
        for origin, target in pairwise(path):
            delays = [
                0.0 if a == b else self._delays_from(a).get(b, 0.0)
                for a in self.hosts[origin]
                for b in self.hosts[target]
            ]
            total += float(np.mean(delays))
        return total

    def _delays_from(self, node: str) -> dict[str, float]:
        if self.infrastructure is None:
            return {}
        links = self.infrastructure.links
        return {
            **{link.b: link.delay_s for link in links if link.a == node},
            **{link.a: link.delay_s for link in links if link.b == node},
        }


def buffered(
    *, rate: float, waiting: float, pause_s: float, slot_s: float, capacity: float
) -> tuple[float, float]:
    """A fluid buffer over one slot that begins with a pause: mean wait, and what is left at the end.

    The mean wait is, by Little's law, the mean content over the rate of arrival.
    """
    running = slot_s - pause_s
    after_pause = waiting + rate * pause_s
    area = (waiting + after_pause) / 2 * pause_s
    draining = capacity - rate
    if draining > 0 and after_pause <= draining * running:
        area += after_pause * (after_pause / draining) / 2
        left = 0.0
    else:
        left = after_pause - draining * running
        area += (after_pause + left) / 2 * running
    tuples = rate * slot_s if rate > 0 else waiting  # those whose wait is meant
    return (area / tuples if tuples > 0 else 0.0), left


def visits(application: Application) -> dict[str, float]:
    """Tuples that reach each operator per tuple at the source."""
    leaving = {source.name: 1.0 / len(application.sources) for source in application.sources}
    reached: dict[str, float] = {}
    for operator in application.in_order:
        reached[operator.name] = sum(leaving[name] for name in application.upstream(operator.name))
        leaving[operator.name] = reached[operator.name] * operator.selectivity
    return reached


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
