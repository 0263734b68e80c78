"""Compiled policies: one `step` for the simulator's millions of slots and for a live decision.

A compiled policy is a NamedTuple (its parameters and the arrays it remembers) and a
function `step(memory, seen, rng) -> (target, score)` registered for that class. Calling
`step` on any memory picks the function by class; inside compiled code the choice is made
at compile time, so an episode loop over Q-learning contains nothing but Q-learning.
"""

import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, ClassVar, Generic, NamedTuple, TypeGuard, TypeVar, cast

import numpy as np
from numpy.random import Generator

from penstock.compiled import compiled, compiled_uncached, is_ours, overload
from penstock.direct_calls import OpenGenerator, generator_at, machine_code
from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import OperatorObservation
from penstock.perf.deployments import Deployments, Handles

K = TypeVar("K", bound=tuple[Any, ...])


class Seen(NamedTuple):
    """An operator over one interval, everything measured."""

    deployment: int  # handle of the deployment in force
    rate: float  # tuples/s
    response_time_s: float
    utilisation: float  # of the busiest replica
    mean_utilisation: float  # over replicas


Step = Callable[[Any, Seen, Generator], tuple[int, float]]

_STEPS: dict[type, Step] = {}

S = TypeVar("S", bound=Step)


def step_of(memory: type) -> Callable[[S], S]:
    """Register a function as the step of every policy with this class of memory, and compile it."""

    def register(function: S) -> S:
        kernel = compiled(function) if is_ours(function) else compiled_uncached(function)
        _STEPS[memory] = kernel
        return kernel

    return register


def step(memory: Any, seen: Seen, rng: Generator) -> tuple[int, float]:
    """One decision: the deployment to run next, and how much it is worth (0 to 1)."""
    return _STEPS[type(memory)](memory, seen, rng)


@overload(step)
def _step_by_class(memory: Any, seen: Any, rng: Any) -> Step:
    chosen = _STEPS[memory.instance_class]

    def same_signature(memory: Any, seen: Any, rng: Any) -> tuple[int, float]:
        return chosen(memory, seen, rng)

    return same_signature


def _step_with(memory: Any, seen: Seen, generator: int) -> tuple[int, float]:
    return step(memory, seen, generator_at(generator))


_cached_step_with = compiled(_step_with)
_uncached_step_with = compiled_uncached(_step_with)


class InPlace(Generic[K]):
    """The memory of a loop that never goes back: every step writes into it.

    The machine code for its types and the generator are looked up once, not at every step.
    """

    __slots__ = ("_code", "_generator", "explains", "memory")

    def __init__(self, memory: K, *, explains: bool) -> None:
        self.memory = memory
        self.explains = explains  # whether decisions say why
        self._code = _code_for(memory)
        self._generator: OpenGenerator | None = None

    def become(self, memory: K) -> None:
        """Continue with another memory, for instance one that has grown."""
        self.memory, self._code = memory, _code_for(memory)

    def step(self, seen: Seen, rng: Generator) -> tuple[int, float]:
        if self._generator is None or self._generator.rng is not rng:
            self._generator = OpenGenerator(rng)
        return self._code(self.memory, seen, self._generator.address)


def _code_for(memory: Any) -> Callable[[Any, Seen, int], tuple[int, float]]:
    kernel = _cached_step_with if is_ours(type(memory)) else _uncached_step_with
    nothing_seen = Seen(0, *(0.0,) * (len(Seen._fields) - 1))
    return machine_code(kernel, memory, nothing_seen, 0)


UNEXPLAINED = "no reasons were asked for"
HELD = Hold(UNEXPLAINED)


def is_compiled(memory: Any) -> bool:
    """Whether a compiled step works on it: then everything that changes is in its arrays."""
    return type(memory) in _STEPS


def copied(memory: K) -> K:
    """A separate memory: writable arrays are copied, read-only ones shared."""

    def own(part: Any) -> Any:
        if isinstance(part, np.ndarray):
            return part.copy() if part.flags.writeable else part
        return _rebuilt(part, own)

    return cast(K, own(memory))


def _rebuilt(part: Any, change: Callable[[Any], Any]) -> Any:
    """A NamedTuple with every field mapped; the very same object where nothing changed."""
    if not isinstance(part, tuple):
        return part
    fields = [change(field) for field in part]
    same = all(new is old for new, old in zip(fields, part, strict=True))
    return part if same else type(part)(*fields)


def with_other_nodes(memory: K, old: Deployments, new: Deployments) -> K:
    """The same memory with new prices or speeds of the nodes, which changed at run time."""

    def replaced(part: Any) -> Any:
        return new if part is old else _rebuilt(part, replaced)

    return cast(K, replaced(memory))


def is_measured(value: float | None, *, finite: bool = False) -> TypeGuard[float]:
    """Whether a metric is a measurement at all: there, a number, not negative."""
    return value is not None and value >= 0 and not (finite and value == np.inf)


def unmeasured(seen: OperatorObservation) -> list[str]:
    """Names of the metrics that are missing, or cannot be measurements: not a number, negative."""
    metrics = {
        "arrival rate": seen.arrival_rate,
        "response time": seen.response_time_s,
        "utilisation": seen.utilisation,
    }
    # A saturated operator has an infinite response time; a rate is always finite.
    return [name for name, value in metrics.items() if not is_measured(value, finite=name == "arrival rate")]


def mean_utilisation(seen: OperatorObservation, busiest: float) -> float:
    """Over replicas, where each was measured; otherwise the busiest counts for all."""
    loads = seen.utilisation_by_replica
    if not loads:
        return busiest
    # Counted down from the busiest, so that the mean of identical replicas is exact to the last digit.
    most, least = max(loads), min(loads)
    if most == least:
        return most if 0 <= most < inf else busiest
    idle = sum([most - load for load in loads])
    # A load that is infinite or not a number makes `idle` the same.
    return most - idle / len(loads) if least >= 0 and idle < inf else busiest


@dataclass(frozen=True, kw_only=True)
class CompiledPolicy(Generic[K]):
    """An operator policy around a compiled step: values to arrays and back, and nothing else."""

    # Simulated before the first live decision, where the usual number takes too long.
    training_slots: ClassVar[int | None] = None

    node_types: tuple[NodeType, ...]
    deployments: Deployments

    def initial(self) -> K:
        raise NotImplementedError

    def starting_type(self) -> int:
        """Node type of the first replica, before anything is known: the cheapest."""
        return int(np.argmin(self.deployments.price))

    def explain(self, memory: K, seen: Seen) -> str:
        """The numbers behind a decision, as part of a sentence."""
        return f"at {seen.rate:.0f} t/s"

    def prepared(self, memory: K) -> K:
        """The memory made ready for one more step, grown if it has to be."""
        return memory

    def informed(self, memory: K, before: Deployments, after: Deployments) -> K:
        """The memory once prices or speeds have changed; a policy that plans off-line ignores the change."""
        return with_other_nodes(memory, before, after)

    def in_place(self, memory: K, *, explains: bool) -> K | InPlace[K]:
        """The memory for a loop that never goes back to it."""
        own = type(self).decide is not CompiledPolicy.decide  # it can rely on a memory of its class
        return memory if own else InPlace(memory, explains=explains)

    @cached_property
    def _handles(self) -> Handles:
        return Handles(self.deployments)

    @typing.overload
    def decide(self, memory: K, seen: OperatorObservation, rng: Generator) -> tuple[Decision, K]: ...

    @typing.overload
    def decide(
        self, memory: InPlace[K], seen: OperatorObservation, rng: Generator
    ) -> tuple[Decision, InPlace[K]]: ...

    def decide(
        self, memory: K | InPlace[K], seen: OperatorObservation, rng: Generator
    ) -> tuple[Decision, K | InPlace[K]]:
        rate, time_s, load = seen.arrival_rate, seen.response_time_s, seen.utilisation
        if (
            (rate is None or time_s is None or load is None)  # or cannot be a measurement
            or not (0 <= rate < inf and time_s >= 0 and load >= 0)
        ):
            return Hold(f"{', '.join(unmeasured(seen))} not measured"), memory
        here = self._handles.find(seen.replicas.counts)
        if here is None:
            most = self.deployments.max_replicas
            return Hold(f"{seen.replicas.total} replicas run, more than the {most} it knows about"), memory
        known = Seen(here, float(rate), float(time_s), float(load), float(mean_utilisation(seen, load)))
        if isinstance(memory, InPlace):
            ready = self.prepared(memory.memory)
            if ready is not memory.memory:
                memory.become(ready)
            target, score = memory.step(known, rng)
            if not memory.explains:
                return self._unexplained(known, target, score), memory
            return self._explained(memory.memory, seen, known, target, score), memory
        memory = self.prepared(copied(memory))
        target, score = step(memory, known, rng)
        return self._explained(memory, seen, known, target, score), memory

    def _unexplained(self, known: Seen, target: int, score: float) -> Decision:
        if target == known.deployment:
            return HELD
        return Scale(target=self._handles.replicas(target), score=score, reason=UNEXPLAINED)

    def _explained(
        self, memory: K, seen: OperatorObservation, known: Seen, target: int, score: float
    ) -> Decision:
        why = self.explain(memory, known)
        if target == known.deployment:
            return Hold(f"{seen.replicas.total} replicas fit {why}")
        wanted = self._handles.replicas(target)
        change = self._in_words(seen.replicas, wanted)
        return Scale(target=wanted, score=float(score), reason=f"{change} {why}")

    def _in_words(self, now: Replicas, wanted: Replicas) -> str:
        return ", ".join(
            f"{new - old:+d} {node_type.name}"
            for node_type, old, new in zip(self.node_types, now.counts, wanted.counts, strict=True)
            if new != old
        )
