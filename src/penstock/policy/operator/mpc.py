"""Model predictive control (De Matteis and Mencagli 2017): the best sequence of changes over a horizon.

Configurations are a number of replicas and the node type that all of them run on, which on one machine is
the frequency of its cores. A step costs (eq. 10)

    alpha exp(R / bound)       its response time (eq. 12), or
    alpha T_S                  its effective service time in milliseconds (eq. 11), and
    beta n price, or watts     what runs (eq. 13, 14; one replica of the first type counts as 1), and
    gamma |u - u before|^2     what changes (eq. 15; types count by their place, slowest first).

Rates are those forecast, where a forecaster is at work, else the last one. Where a replica takes several
steps to come, every step has to do for the highest rate until then: asking for more takes that long, going
without is done at once. R is Kingman's (eq. 6 to 8), fitted to the last waiting time measured; on a
micro-batch engine it is that of its batches, learned as they end. In a step that overloads every
configuration only the largest will do, for which the paper has no rule.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, compiled_allocating
from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import OperatorObservation
from penstock.perf.deployments import Deployments
from penstock.perf.micro_batch import MicroBatches, settled_response_s
from penstock.perf.queueing import QueueModel, corrected, g_g_1, waiting_time
from penstock.planning.horizon import best_move
from penstock.policy.kernel import is_measured, unmeasured
from penstock.policy.operator.learned_batches import LearnedBatches, comes_within_s, speed_of
from penstock.policy.parameters import Param, check_parameters
from penstock.policy.registry import operator_policy

_LATENCY, _THROUGHPUT = "latency", "throughput"
_PRICE, _POWER = "price", "power"
_MS = 1000.0
_MOST_RATIO = 10.0  # what little waits in an idle operator tells nothing of a busy one


class MpcMemory(NamedTuple):
    """What measurements have told about the model."""

    batches: LearnedBatches = LearnedBatches()
    ratios: tuple[float, ...] = ()  # measured waiting times over the model's, the latest


@operator_policy("mpc", has_bounds=True, anticipates=True, plans_ahead=True)
@dataclass(frozen=True, kw_only=True)
class ModelPredictive:
    """Plans replicas over a horizon of forecasts: response time, resources and changes, weighed."""

    node_types: tuple[NodeType, ...]
    deployments: Deployments
    queue: QueueModel
    service_time_s: float
    service_scv: float
    max_response_time_s: float
    qos: Annotated[str, Param("what is paid for: latency (eq. 12) or throughput (eq. 11)")] = _LATENCY
    resources: Annotated[str, Param("what replicas cost: their price or their power")] = _PRICE
    horizon: Annotated[int, Param("steps that are planned", at_least=1, at_most=1000)] = 2
    alpha: Annotated[float, Param("weight of quality", above=0)] = 3.0
    beta: Annotated[float, Param("weight of a replica of the first type", above=0)] = 0.5
    gamma: Annotated[float, Param("weight of a change, squared", at_least=0)] = 0.4
    ratios: Annotated[
        int, Param("measurements that the correction of waiting times is the mean of; 0: none", at_least=0)
    ] = 1
    full: Annotated[
        float, Param("utilisation that counts as full in the waiting time", above=0, at_most=1)
    ] = 1.0
    drain_s: Annotated[
        float, Param("seconds within which a backlog is to be gone; the bound, if that is longer", above=0)
    ] = 5.0
    ready_s: Annotated[
        float, Param("seconds until a replica is at work, as long as none has been measured", at_least=0)
    ] = 10.0

    def __post_init__(self) -> None:
        check_parameters(self)
        for what, value, known in (
            ("qos", self.qos, (_LATENCY, _THROUGHPUT)),
            ("resources", self.resources, (_PRICE, _POWER)),
        ):
            if value not in known:
                raise InputError(f"mpc: {what}={value}; choose {' or '.join(known)}")
        unknown = [one.name for one in self.node_types if one.watts is None]
        if self.resources == _POWER and unknown:
            raise InputError(f"mpc: resources=power, but the watts of node type '{unknown[0]}' are not known")
        if not any(self._each):
            raise InputError(f"mpc: no node type has a {self.resources}, so nothing speaks against replicas")

    def initial(self) -> MpcMemory:
        return MpcMemory()

    def decide(
        self, memory: MpcMemory, seen: OperatorObservation, rng: Generator
    ) -> tuple[Decision, MpcMemory]:
        rate = self._rate(seen)
        missing = unmeasured(seen) if memory.batches.model() is None else []
        if missing or rate is None:
            return Hold(f"{', '.join(missing or ['arrival rate'])} not measured"), memory
        there = _with_those_coming(seen)
        here = there.total
        if here > self.deployments.max_replicas:
            most = self.deployments.max_replicas
            return Hold(f"{here} replicas run, more than the {most} it knows about"), memory
        memory = self._learned(memory, seen)
        rates = self._rates(memory, seen, rate)
        now = self._place_of(there)
        batches = memory.batches.model(trigger_s=seen.trigger_s or 0.0)
        costs, times_s = self._costs(rates, self._queue(memory, seen), batches)
        overloaded = costs.min(axis=1) == inf
        costs[overloaded, -1] = 0.0
        move = best_move(costs, (self.deployments.max_replicas, len(self.node_types)), now, self.gamma)
        why = self._why(rates, times_s[0, move.place], overloaded=bool(overloaded[0]))
        target = self._target(there, move.place, now)
        if target == there:
            return Hold(f"{here} replicas: {why}"), memory
        apart = abs(target.total - here) / max(here, 1)
        return Scale(target=target, score=min(max(apart, 0.1), 1.0), reason=f"{target.total}: {why}"), memory

    def _rate(self, seen: OperatorObservation) -> float | None:
        known = (seen.offered_rate, seen.arrival_rate)
        return next((rate for rate in known if is_measured(rate, finite=True)), None)

    def _rates(self, memory: MpcMemory, seen: OperatorObservation, rate: float) -> Floats:
        """Of every step of the horizon; beyond a forecast, its last value. A backlog is load, too."""
        ahead = [one for one in seen.forecast or () if is_measured(one, finite=True)] or [rate]
        until = self._steps_to_come(memory, seen)
        ahead = [*ahead, *[ahead[-1]] * (until + self.horizon)]
        ahead = [max(ahead[step : step + until + 1]) for step in range(self.horizon)]
        waiting = seen.backlog if is_measured(seen.backlog, finite=True) else 0.0
        # Tuples that stay no longer than they may are no backlog (Little's law).
        excess = max(waiting - rate * self.max_response_time_s, 0.0)
        return np.array(ahead) + excess / max(self.drain_s, self.max_response_time_s)

    def _steps_to_come(self, memory: MpcMemory, seen: OperatorObservation) -> int:
        """Steps of the forecast until a replica asked for now is at work; 0 where it is there at once."""
        if seen.forecast_interval_s is None:
            return 0
        known = is_measured(seen.ready_s, finite=True) or memory.batches.model() is not None
        within_s = comes_within_s(seen, self.ready_s) if known else 0.0
        return ceil(within_s / seen.forecast_interval_s)

    def _learned(self, memory: MpcMemory, seen: OperatorObservation) -> MpcMemory:
        """Eq. 8 at what was measured, not at what was forecast: a surprise is no error of the model."""
        batches = memory.batches.seen(seen, self.node_types, ready_s=self.ready_s)
        ratios, rate, time_s = memory.ratios, seen.arrival_rate, seen.response_time_s
        if self.ratios and is_measured(rate, finite=True) and is_measured(time_s, finite=True):
            plain = self._queue(MpcMemory(), seen)._replace(correction=0.0)
            fitted = corrected(
                plain,
                rate=rate / self.full,
                measured_wait_s=max(time_s - self._service_s(seen), 0.0),
                speed=speed_of(seen.replicas, self.node_types),
            )
            if fitted is not plain:  # something was queueing, and could
                ratios = (*ratios, min(fitted.correction, _MOST_RATIO))[-self.ratios :]
        return MpcMemory(batches, ratios)

    def _service_s(self, seen: OperatorObservation) -> float:
        """Of a tuple, where it ran."""
        if is_measured(seen.service_time_s, finite=True) and seen.service_time_s > 0:
            return seen.service_time_s
        return self.service_time_s * seen.replicas.total / speed_of(seen.replicas, self.node_types)

    def _queue(self, memory: MpcMemory, seen: OperatorObservation) -> QueueModel:
        """Kingman's, by the last measurements (eq. 7 and 8)."""
        served_s = self._service_s(seen)
        variance = seen.service_variance_s2
        measured = is_measured(variance, finite=True) and is_measured(seen.service_time_s, finite=True)
        service_scv = variance / served_s**2 if measured and variance is not None else self.service_scv
        arrivals = seen.arrival_scv if is_measured(seen.arrival_scv, finite=True) else 1.0
        at_speed_1_s = served_s * speed_of(seen.replicas, self.node_types) / seen.replicas.total
        correction = sum(memory.ratios) / len(memory.ratios) if memory.ratios else 1.0
        return g_g_1(at_speed_1_s, arrivals, service_scv, correction=correction)

    @cached_property
    def _speeds(self) -> Floats:
        return np.array([self.node_types[index].speedup for index in self._slowest_first])

    @cached_property
    def _slowest_first(self) -> list[int]:
        return sorted(range(len(self.node_types)), key=lambda index: self.node_types[index].speedup)

    @cached_property
    def _each(self) -> list[float]:
        """What a replica of each type costs, slowest first, in those of the first type that has a cost."""
        of = [self.node_types[index] for index in self._slowest_first]
        costs = [one.price if self.resources == _PRICE else one.watts or 0.0 for one in of]
        first = self.node_types[0]
        unit = first.price if self.resources == _PRICE else first.watts or 0.0
        unit = unit or max(costs)
        return [cost / unit for cost in costs] if unit > 0 else costs

    def _costs(self, rates: Floats, queue: QueueModel, batches: MicroBatches | None) -> tuple[Floats, Floats]:
        """Of every step and configuration: what it costs, and its response time."""
        if batches is None and self.queue.in_batches:
            batches = MicroBatches(
                fixed_s=self.queue.batch_fixed_s,
                tuple_s=self.queue.service_time_s,
                trigger_s=self.queue.trigger_s,
            )
        most = self.deployments.max_replicas
        if batches is not None:
            parts = (batches.fixed_s, batches.shared_s, batches.tuple_s, batches.trigger_s)
            times_s = batch_times_s(rates, most, self._speeds, parts)
        else:
            times_s = waiting_times_s(rates, most, self._speeds, queue, self.full)
        counts = np.repeat(np.arange(1, most + 1), len(self._speeds))
        resources = self.beta * counts * np.tile(self._each, most)
        if self.qos == _LATENCY:
            with np.errstate(over="ignore"):
                quality = self.alpha * np.exp(times_s / self.max_response_time_s)
        else:
            # Eq. 4 and 5: whatever comes, or what the replicas manage.
            speed = counts * np.tile(self._speeds, most)
            each_s = batches.tuple_s if batches is not None else queue.service_time_s
            served_s = each_s / speed
            # Where less arrives than anything could take, all are alike: it does not matter how much less.
            with np.errstate(divide="ignore"):
                between_s = np.minimum(1 / rates, served_s.max())[:, None]
            quality = self.alpha * _MS * np.maximum(between_s, served_s)
        return quality + resources, times_s

    def _place_of(self, replicas: Replicas) -> int:
        """In the grid; where several types run, as the one with the most replicas."""
        kind = max(range(len(self.node_types)), key=lambda index: replicas.counts[index])
        return (replicas.total - 1) * len(self.node_types) + self._slowest_first.index(kind)

    def _count_and_type(self, place: int) -> tuple[int, int]:
        count, kind = divmod(place, len(self.node_types))
        return count + 1, self._slowest_first[kind]

    def _target(self, now: Replicas, place: int, before: int) -> Replicas:
        if place == before:
            return now
        count, kind = self._count_and_type(place)
        return Replicas(tuple(count if index == kind else 0 for index in range(len(self.node_types))))

    def _why(self, rates: Floats, time_s: float, *, overloaded: bool) -> str:
        span = " to ".join(f"{rate:.0f}" for rate in (rates[0], rates[-1])[: 1 + (rates[0] != rates[-1])])
        if overloaded:
            return f"the largest there is: {span} t/s would overload every configuration"
        return f"{time_s:.3g} s expected at {span} t/s over {self.horizon} steps"


def _with_those_coming(seen: OperatorObservation) -> Replicas:
    """What was asked for is planned with: else it would be asked for again until it is there."""
    coming = seen.coming or (0,) * len(seen.replicas.counts)
    pairs = zip(seen.replicas.counts, coming, strict=True)
    return Replicas(tuple(count + more for count, more in pairs))


@compiled_allocating
def waiting_times_s(rates: Floats, most: int, speeds: Floats, queue: QueueModel, full: float) -> Floats:
    """Eq. 6 and 7, with n servers as one; by step and by configuration."""
    times_s = np.empty((rates.size, most * speeds.size))
    for step in range(rates.size):
        place = 0
        for count in range(1, most + 1):
            for speed in speeds:
                wait_s = waiting_time(queue, rates[step] / full, count * speed)
                times_s[step, place] = queue.service_time_s / speed + wait_s
                place += 1
    return times_s


@compiled_allocating
def batch_times_s(
    rates: Floats, most: int, speeds: Floats, parts: tuple[float, float, float, float]
) -> Floats:
    """Of micro-batches that have settled at these rates."""
    fixed_s, shared_s, tuple_s, trigger_s = parts
    times_s = np.empty((rates.size, most * speeds.size))
    for step in range(rates.size):
        place = 0
        for count in range(1, most + 1):
            for each in speeds:
                speed = count * each
                empty_s = fixed_s + shared_s / speed
                times_s[step, place] = settled_response_s(empty_s, tuple_s, trigger_s, rates[step], speed)
                place += 1
    return times_s
