"""EDRP: how many replicas every operator runs, and on which hosts (Cardellini 2017, secs. 3 to 5).

A deployment of an operator is a multiset of hosts. Response time is that of the longest path from a source
to a sink (eq. 5 to 7), cost that of all replicas and of all traffic between hosts (eq. 8 and 9), downtime
that of the operator whose change takes longest (eq. 10). What is minimised is their weighted sum, each
divided by its bound, which none may exceed (eq. 12 to 18).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement
from math import isfinite

import numpy as np

from penstock.compiled import Floats
from penstock.domain.deployment import check_max_replicas
from penstock.domain.errors import InputError
from penstock.perf.queueing import QueueModel

# Beyond these a number is a slip, and what is made of several of them overflows.
SMALLEST, LARGEST = 1e-50, 1e50

Deployment = tuple[str, ...]  # the host of every replica of an operator, in the network's order
Plan = Mapping[str, Deployment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A computing node."""

    name: str
    capacity: float  # resources there are
    speedup: float = 1.0
    price: float = 1.0  # times what an operator's replica costs
    spawn_s: float = 0.0  # to start replicas, however many
    # To and from the store that code and state are moved by.
    store_delay_s: float = 0.0  # one way
    upload_bytes_s: float = np.inf
    download_bytes_s: float = np.inf
    local_bytes_s: float = np.inf  # to and from its own disk, where an engine restarts in place

    def __post_init__(self) -> None:
        _positive(f"host '{self.name}'", speedup=self.speedup)
        _not_negative(
            f"host '{self.name}'",
            capacity=self.capacity,
            price=self.price,
            spawn_s=self.spawn_s,
            store_delay_s=self.store_delay_s,
        )
        for what in ("upload_bytes_s", "download_bytes_s", "local_bytes_s"):
            if not getattr(self, what) >= SMALLEST:
                raise InputError(
                    f"host '{self.name}': {what}={getattr(self, what)}; it must be positive, at least "
                    f"{SMALLEST:g}"
                )


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """Hosts, and what lies between any two of them; nothing does between a host and itself."""

    hosts: tuple[Host, ...]
    delay_s: Floats  # from one host (row) to another
    price: Floats  # of one tuple/s from one host to another

    def __post_init__(self) -> None:
        if not self.hosts:
            raise InputError("network: no hosts")
        names = [host.name for host in self.hosts]
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"network: host '{name}' appears twice")
        for what, matrix in (("delay_s", self.delay_s), ("price", self.price)):
            if matrix.shape != (len(names), len(names)):
                raise InputError(f"network: {what} is {matrix.shape}; there are {len(names)} hosts")
            if not ((matrix >= 0) & (matrix <= LARGEST)).all():
                raise InputError(
                    f"network: {what} has values that are negative, not finite or above {LARGEST:g}"
                )
            if np.diag(matrix).any():
                raise InputError(f"network: {what} from a host to itself must be 0")

    @cached_property
    def index(self) -> Mapping[str, int]:
        return {host.name: number for number, host in enumerate(self.hosts)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedOperator:
    """A source, an operator or a sink: all of them run somewhere."""

    name: str
    rate: float  # tuples/s that it has to work on
    queue: QueueModel | None  # its latency as a function of the rate, on a host of speedup 1; None: none
    demand: float = 1.0  # resources a replica needs
    cost: float = 1.0  # of a replica per unit of its demand
    code_bytes: float = 0.0
    state_bytes: float = 0.0
    max_replicas: int = 1
    allowed: tuple[str, ...] | None = None  # hosts it may run on; one for one that is pinned, None for all

    def __post_init__(self) -> None:
        _not_negative(
            f"operator '{self.name}'",
            rate=self.rate,
            cost=self.cost,
            code_bytes=self.code_bytes,
            state_bytes=self.state_bytes,
        )
        _positive(f"operator '{self.name}'", demand=self.demand)
        check_max_replicas(self.max_replicas, of=f"operator '{self.name}'")
        if self.allowed is not None and not self.allowed:
            raise InputError(f"operator '{self.name}': no host is allowed")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStream:
    origin: str
    target: str
    rate: float  # tuples/s

    def __post_init__(self) -> None:
        _not_negative(f"stream {self.origin}->{self.target}", rate=self.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Weights and bounds of response time, cost and downtime; without a bound, the unit it is weighed in."""

    response_time: float
    cost: float
    downtime: float
    max_response_time_s: float
    max_cost: float
    max_downtime_s: float

    def __post_init__(self) -> None:
        weights = (self.response_time, self.cost, self.downtime)
        if any(not isfinite(weight) or weight < 0 for weight in weights):
            raise InputError(f"weights {weights}: each must be a number and not negative")
        if abs(sum(weights) - 1) > 1e-9:
            raise InputError(f"weights {weights}: they sum to {sum(weights):.12g}; they must sum to 1")
        _positive(
            "bounds",
            max_response_time_s=self.max_response_time_s,
            max_cost=self.max_cost,
            max_downtime_s=self.max_downtime_s,
        )

    def value(self, response_time_s: float, cost: float, downtime_s: float) -> float:
        """Eq. 12."""
        return (
            self.response_time * response_time_s / self.max_response_time_s
            + self.cost * cost / self.max_cost
            + self.downtime * downtime_s / self.max_downtime_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """How a change is carried out."""

    sync_s: float = 0.0  # whatever is changed
    restarts_all: bool = False  # as Storm does (app. A.2): every operator restarts when any is changed

    def __post_init__(self) -> None:
        _not_negative("engine", sync_s=self.sync_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What the paper leaves open. Each default is the one that its text or its other formulas support."""

    speed_in_queue: bool = False  # eq. 1: speed-up divides the latency (as printed), or serves faster
    traffic_per_host: bool = False  # eq. 4: links carry what replicas exchange, or count once per host
    round_trip_for_nothing: bool = True  # eq. 28 to 30: no bytes to move still ask the store


@dataclass(frozen=True, kw_only=True)
class Problem:
    """An instance: operators in an order in which streams only go forward."""

    operators: tuple[PlannedOperator, ...]
    streams: tuple[PlannedStream, ...]
    network: Network
    goal: Goal
    current: Plan | None = None  # what runs now; None: nothing yet, so that nothing is interrupted
    engine: Engine = field(default_factory=Engine)
    readings: Readings = field(default_factory=Readings)

    def __post_init__(self) -> None:
        self._check_graph()
        hosts = self.network.index
        for operator in self.operators:
            for name in operator.allowed or ():
                if name not in hosts:
                    raise InputError(f"operator '{operator.name}': unknown host '{name}'")
        if self.current is not None:
            self._check_current(self.current)

    def _check_graph(self) -> None:
        names = [operator.name for operator in self.operators]
        if not names:
            raise InputError("no operators")
        for name in names:
            if names.count(name) > 1:
                raise InputError(f"operator '{name}' appears twice")
        place = {name: number for number, name in enumerate(names)}
        seen: set[tuple[str, str]] = set()
        for stream in self.streams:
            for end in (stream.origin, stream.target):
                if end not in place:
                    raise InputError(f"stream {stream.origin}->{stream.target}: unknown operator '{end}'")
            if place[stream.origin] >= place[stream.target]:
                raise InputError(
                    f"stream {stream.origin}->{stream.target} goes back: a cycle, or not in order"
                )
            if (stream.origin, stream.target) in seen:
                raise InputError(f"stream {stream.origin}->{stream.target} appears twice")
            seen.add((stream.origin, stream.target))

    def _check_current(self, current: Plan) -> None:
        names = {operator.name: operator for operator in self.operators}
        for name in (*current, *names):
            if name not in names:
                raise InputError(f"current deployment: unknown operator '{name}'")
            if not current.get(name):
                raise InputError(f"current deployment: operator '{name}' runs nowhere")
        for name, hosts in current.items():
            for host in hosts:
                if host not in self.network.index:
                    raise InputError(f"current deployment: operator '{name}' on unknown host '{host}'")

    def allowed(self, operator: PlannedOperator) -> tuple[int, ...]:
        """Hosts, by number, that have room for a replica of it."""
        index, hosts = self.network.index, self.network.hosts
        wanted = index.values() if operator.allowed is None else {index[name] for name in operator.allowed}
        return tuple(
            number for number in sorted(wanted) if hosts[number].capacity >= operator.demand * (1 - 1e-9)
        )

    def in_order(self, hosts: Deployment) -> Deployment:
        """The same multiset, written in the one way that compares."""
        return tuple(sorted(hosts, key=self.network.index.__getitem__))


def multisets(hosts: tuple[int, ...], most: int) -> list[tuple[int, ...]]:
    """All multisets of one to `most` hosts, small ones first."""
    return [chosen for size in range(1, most + 1) for chosen in combinations_with_replacement(hosts, size)]


def _positive(of: str, **values: float) -> None:
    for what, value in values.items():
        if not SMALLEST <= value <= LARGEST:
            raise InputError(f"{of}: {what}={value}; it must be positive, from {SMALLEST:g} to {LARGEST:g}")


def _not_negative(of: str, **values: float) -> None:
    for what, value in values.items():
        if not 0 <= value <= LARGEST:
            raise InputError(f"{of}: {what}={value}; it must not be negative, and at most {LARGEST:g}")
