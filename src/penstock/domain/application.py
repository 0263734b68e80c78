"""The application: a directed acyclic graph of sources, operators and sinks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isfinite

from penstock.domain.deployment import check_max_replicas
from penstock.domain.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a stream enters."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """Where results leave."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """An operator that takes tuples in micro-batches, not one by one."""

    fixed_s: float  # of a batch, whatever is in it
    trigger_s: float = 0.0  # a batch begins this long after the one before it, at the earliest

    def __post_init__(self) -> None:
        for name, value in (("fixed_s", self.fixed_s), ("trigger_s", self.trigger_s)):
            if not (isfinite(value) and value >= 0):
                raise InputError(f"micro-batches: {name}={value}; it must be finite and not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One processing step, run by one or more replicas."""

    name: str
    service_time_s: float  # mean, per tuple, on a node of speedup 1
    service_scv: float = 1.0  # variance / mean^2; 0 is constant, 1 exponential
    selectivity: float = 1.0  # tuples out per tuple in
    stateful: bool = False
    state_bytes: int = 0
    max_replicas: int = 10
    pinned_to: str | None = None  # the only node this operator may run on
    batching: Batching | None = None  # None: tuple by tuple

    def __post_init__(self) -> None:
        if not (isfinite(self.service_time_s) and self.service_time_s > 0):
            raise InputError(
                f"operator '{self.name}': service_time_s={self.service_time_s}; it must be positive"
            )
        if not (isfinite(self.service_scv) and self.service_scv >= 0):
            raise InputError(f"operator '{self.name}': service_scv={self.service_scv}; it cannot be negative")
        if not (isfinite(self.selectivity) and self.selectivity >= 0):
            raise InputError(f"operator '{self.name}': selectivity={self.selectivity}; it cannot be negative")
        check_max_replicas(self.max_replicas, of=f"operator '{self.name}'")
        if self.state_bytes < 0:
            raise InputError(f"operator '{self.name}': state_bytes={self.state_bytes}; it cannot be negative")
        if self.state_bytes and not self.stateful:
            raise InputError(f"operator '{self.name}': state_bytes={self.state_bytes} but it is not stateful")

    @property
    def service_variance_s2(self) -> float:
        return self.service_scv * self.service_time_s**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An edge: everything that leaves `origin` reaches `target`."""

    origin: str
    target: str


Path = tuple[str, ...]  # operator names from a source to a sink, both left out


@dataclass(frozen=True, kw_only=True)
class Application:
    """A checked graph: acyclic, everything reachable from a source and on the way to a sink."""

    name: str
    sources: tuple[Source, ...]
    operators: tuple[Operator, ...]
    sinks: tuple[Sink, ...]
    streams: tuple[Stream, ...]

    def __post_init__(self) -> None:
        if not self.operators:
            raise InputError(f"application '{self.name}': no operators")
        self._check_names()
        self._check_ends()
        _ = self.in_order  # raises on a cycle
        self._check_reach()

    def _check_names(self) -> None:
        names = [
            *(source.name for source in self.sources),
            *(operator.name for operator in self.operators),
            *(sink.name for sink in self.sinks),
        ]
        for name in names:
            if not name:
                raise InputError(f"application '{self.name}': a source, operator or sink has no name")
            if names.count(name) > 1:
                raise InputError(f"application '{self.name}': '{name}' appears twice")
        for stream in self.streams:
            for end in (stream.origin, stream.target):
                if end not in names:
                    edge = f"{stream.origin}->{stream.target}"
                    raise InputError(f"application '{self.name}': stream {edge} names unknown '{end}'")
            if self.streams.count(stream) > 1:
                raise InputError(
                    f"application '{self.name}': stream {stream.origin}->{stream.target} appears twice"
                )

    def _check_ends(self) -> None:
        for source in self.sources:
            if self.upstream(source.name):
                raise InputError(f"application '{self.name}': source '{source.name}' has an incoming stream")
        for sink in self.sinks:
            if self.downstream(sink.name):
                raise InputError(f"application '{self.name}': sink '{sink.name}' has an outgoing stream")

    def _check_reach(self) -> None:
        reached = _closure((s.name for s in self.sources), self.downstream)
        reaching = _closure((s.name for s in self.sinks), self.upstream)
        for operator in self.operators:
            if operator.name not in reached:
                raise InputError(
                    f"application '{self.name}': operator '{operator.name}' is not reachable from a source"
                )
            if operator.name not in reaching:
                raise InputError(f"application '{self.name}': operator '{operator.name}' reaches no sink")

    def upstream(self, name: str) -> tuple[str, ...]:
        return tuple(s.origin for s in self.streams if s.target == name)

    def downstream(self, name: str) -> tuple[str, ...]:
        return tuple(s.target for s in self.streams if s.origin == name)

    def operator(self, name: str) -> Operator:
        for operator in self.operators:
            if operator.name == name:
                return operator
        raise InputError(f"application '{self.name}': no operator '{name}'")

    @cached_property
    def in_order(self) -> tuple[Operator, ...]:
        """Operators so that each comes after everything upstream of it."""
        placed = {source.name for source in self.sources}
        ordered: list[Operator] = []
        waiting = list(self.operators)
        while waiting:
            ready = [op for op in waiting if placed.issuperset(self.upstream(op.name))]
            if not ready:
                around = " -> ".join(self._cycle({op.name for op in waiting}))
                raise InputError(f"application '{self.name}': a cycle through {around}")
            ordered += ready
            placed.update(op.name for op in ready)
            waiting = [op for op in waiting if op.name not in placed]
        return tuple(ordered)

    def _cycle(self, stuck: set[str]) -> list[str]:
        """One cycle among operators each of which waits for another of them."""
        walked: list[str] = []
        name = min(stuck)
        while name not in walked:
            walked.append(name)
            name = next(origin for origin in self.upstream(name) if origin in stuck)
        return [name, *reversed(walked[walked.index(name) :])]

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """Every way from a source to a sink, as operator names."""
        sinks = {sink.name for sink in self.sinks}

        def onward(name: str, so_far: Path) -> list[Path]:
            if name in sinks:
                return [so_far]
            return [
                path
                for follower in self.downstream(name)
                for path in onward(follower, so_far if follower in sinks else (*so_far, follower))
            ]

        return tuple(path for source in self.sources for path in onward(source.name, ()) if path)


def _closure(start: Iterable[str], step: Callable[[str], Iterable[str]]) -> set[str]:
    found: set[str] = set()
    frontier = list(start)
    while frontier:
        name = frontier.pop()
        if name not in found:
            found.add(name)
            frontier.extend(step(name))
    return found


def pipeline(name: str, *operators: Operator) -> Application:
    """Operators one after another, from one source to one sink."""
    chain = ("source", *(op.name for op in operators), "sink")
    return Application(
        name=name,
        sources=(Source(name="source"),),
        operators=operators,
        sinks=(Sink(name="sink"),),
        streams=tuple(Stream(origin=a, target=b) for a, b in pairwise(chain)),
    )
