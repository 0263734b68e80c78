"""Objective first: the fewest replicas whose predicted response time stays inside the objective.

How long a tuple will stay is predicted with the model of micro-batches (`perf/micro_batch.py`),
learned from the batches of this very operator as they end; where an engine has none, such as the
simulator, with the queueing model the operator is known by. What cannot be known, the next
interval's load above all, is covered by a margin. A load that rises counts as what it will be by the
time that the replicas asked for next can be at work: those asked for now have to do until then. What
waits beyond what the bound allows counts as load until it is drained.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import OperatorObservation
from penstock.perf.deployments import Deployments, handle_of
from penstock.perf.micro_batch import Batch, Calibration
from penstock.perf.operator import response_time
from penstock.perf.queueing import QueueModel
from penstock.perf.trend import rise
from penstock.policy.kernel import is_measured, unmeasured
from penstock.policy.parameters import Param
from penstock.policy.registry import operator_policy

_TREND = 4  # intervals a rise is read from
_CALM = 1.1  # times the load, which a load that does not change stays below
_MOST_RISE = 1.5  # of the load, however steep


class ObjectiveMemory(NamedTuple):
    """What the batches so far have told."""

    batches: Calibration = Calibration()
    rates: tuple[tuple[float, float], ...] = ()  # the latest (moment, tuples/s)


@operator_policy("objective", has_bounds=True, anticipates=True)
@dataclass(frozen=True, kw_only=True)
class ObjectiveFirst:
    """The fewest replicas whose predicted response time stays inside the objective."""

    node_types: tuple[NodeType, ...]
    deployments: Deployments
    queue: QueueModel
    max_response_time_s: float
    margin: Annotated[
        float,
        Param(
            "share of the bound, and of the replicas' time, kept free for what is not known",
            at_least=0,
            below=1,
        ),
    ] = 0.3
    drain_s: Annotated[float, Param("seconds within which a backlog is to be gone", above=0)] = 15.0
    ready_s: Annotated[
        float, Param("seconds until a replica is at work, as long as none has been measured", at_least=0)
    ] = 10.0
    kept: Annotated[
        float, Param("share of what is known that an interval later still counts", above=0, at_most=1)
    ] = 0.9

    def initial(self) -> ObjectiveMemory:
        return ObjectiveMemory()

    def starting_type(self) -> int:
        """The cheapest type per unit of speed."""
        value = [one.price / one.speedup for one in self.node_types]
        return int(np.argmin(value))

    def decide(
        self, memory: ObjectiveMemory, seen: OperatorObservation, rng: Generator
    ) -> tuple[Decision, ObjectiveMemory]:
        rate, missing = seen.arrival_rate, unmeasured(seen)
        if missing or rate is None:
            return Hold(f"{', '.join(missing)} not measured"), memory
        memory = self._learned(memory, seen, rate)
        waiting = seen.backlog if is_measured(seen.backlog, finite=True) else 0.0
        # Tuples that stay no longer than they may are no backlog (Little's law).
        backlog = max(waiting + self._growing(memory, seen, rate) - rate * self._bound_s, 0.0)
        rate = self._expected(memory, seen, rate)
        now, here = seen.replicas, seen.replicas.total
        wanted = self._wanted(memory, seen, rate, backlog)
        if wanted < here:
            # Only as few as would also do for a little more load: else the next interval undoes it.
            wanted = min(self._wanted(memory, seen, rate * _CALM, backlog), here)
        if wanted == here:
            return Hold(f"{here} replicas: as needed at {rate:.0f} t/s"), memory
        behind = f" and {backlog:.0f} to work off" if backlog >= 1 else ""
        return (
            Scale(
                target=self._target(now, wanted),
                score=min(abs(wanted - here) / here, 1.0),
                reason=f"{wanted - here:+d}: {wanted} needed for {self.max_response_time_s:.3g} s at "
                f"{rate:.0f} t/s{behind}",
            ),
            memory,
        )

    def _learned(self, memory: ObjectiveMemory, seen: OperatorObservation, rate: float) -> ObjectiveMemory:
        rates = (*memory.rates, (seen.at_s, rate))[-_TREND:]
        if not (is_measured(seen.batch_s, finite=True) and is_measured(seen.batch_tuples, finite=True)):
            return memory._replace(rates=rates)
        speed = self._speed(seen.replicas)
        batch = Batch(seen.batch_tuples, speed, seen.batch_s)
        tuple_s = None
        if is_measured(seen.service_time_s, finite=True):
            tuple_s = seen.service_time_s * speed / seen.replicas.total  # on a replica of speed 1
        return ObjectiveMemory(memory.batches.seen(batch, kept=self.kept, tuple_s=tuple_s), rates)

    def _growing(self, memory: ObjectiveMemory, seen: OperatorObservation, rate: float) -> float:
        """Tuples that will wait in addition by the time that replicas asked for now are at work."""
        model = memory.batches.model()
        if model is None or model.tuple_s == 0:
            return 0.0
        served = self._speed(seen.replicas) / model.tuple_s
        return max(rate - served, 0.0) * self._comes_within_s(seen)

    def _comes_within_s(self, seen: OperatorObservation) -> float:
        return seen.ready_s if is_measured(seen.ready_s, finite=True) else self.ready_s

    def _expected(self, memory: ObjectiveMemory, seen: OperatorObservation, rate: float) -> float:
        """The load when replicas asked for after these can be at work, if it goes on rising as it does."""
        if len(memory.rates) < 2:
            return rate
        ready_s = self._comes_within_s(seen)
        interval_s = memory.rates[-1][0] - memory.rates[-2][0]
        # A rate is the mean of its interval. One change at a time: the next one follows when this is done.
        lasts_s = interval_s / 2 + max(ready_s, interval_s) + ready_s
        return rate + min(rise(memory.rates) * lasts_s, _MOST_RISE * rate)

    @property
    def _bound_s(self) -> float:
        return (1 - self.margin) * self.max_response_time_s

    def _speed(self, replicas: Replicas) -> float:
        pairs = zip(replicas.counts, self.node_types, strict=True)
        return sum(count * one.speedup for count, one in pairs)

    def _wanted(self, memory: ObjectiveMemory, seen: OperatorObservation, rate: float, backlog: float) -> int:
        """How many replicas, of the type that is added."""
        bound_s, most = self._bound_s, self.deployments.max_replicas
        added = self.starting_type()
        speedup = self.node_types[added].speedup
        model = memory.batches.model()
        if model is not None:
            return model.replicas_for(
                rate,
                bound_s,
                most=most,
                speed=speedup,
                # Near a full load, batches grow out of all proportion with every tuple nobody expected.
                busiest=1 - self.margin,
                backlog=backlog,
                drain_s=self.drain_s,
            )
        load = rate + backlog / self.drain_s
        for count in range(1, most + 1):
            only = Replicas(tuple(count if index == added else 0 for index in range(len(self.node_types))))
            if (
                response_time(self.queue, self.deployments, handle_of(self.deployments, only), load)
                <= bound_s
            ):
                return count
        return most

    def _target(self, now: Replicas, wanted: int) -> Replicas:
        """More of the type with the lowest price per speed; fewer of the dearest first."""
        added, target = self.starting_type(), now
        while target.total < wanted:
            target = target.changed(added, +1)
        dearest = sorted(range(len(self.node_types)), key=lambda index: -self.node_types[index].price)
        while target.total > wanted:
            target = target.changed(next(index for index in dearest if target.counts[index]), -1)
        return target
