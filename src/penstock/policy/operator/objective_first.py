"""Objective first: the fewest replicas whose predicted response time stays inside the objective.

How long a tuple will stay is predicted with the model of micro-batches (`perf/micro_batch.py`),
learned from the batches of this very operator as they end; where an engine has none, such as the
simulator, with the queueing model the operator is known by. What cannot be known, the next
interval's load above all, is covered by a margin. The load is what the sources bring, where that is
known: what comes from an operator that works off a backlog is a burst. One that rises counts as what it
will be by the time that the replicas asked for next can be at work: those asked for now have to do until
then. What waits beyond what the bound allows counts as load until it is drained.
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
from penstock.perf.micro_batch import DRAINING
from penstock.perf.operator import response_time
from penstock.perf.queueing import QueueModel
from penstock.perf.trend import Trend, trend
from penstock.policy.kernel import is_measured, unmeasured
from penstock.policy.operator.learned_batches import LearnedBatches, comes_within_s, speed_of
from penstock.policy.parameters import Param
from penstock.policy.registry import operator_policy

_TREND_S = 12.0  # that the load's level and rise are read from
_LEAST_READINGS = 3  # however long ago
_CALM = 1.1  # times the load, which a load that does not change stays below
_MOST_RISE = 1.5  # of the load, however steep


class ObjectiveMemory(NamedTuple):
    """What the batches so far have told."""

    batches: LearnedBatches = LearnedBatches()
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
    ] = 0.2
    drain_s: Annotated[
        float, Param("seconds within which a backlog is to be gone; the bound, if that is longer", above=0)
    ] = 5.0
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
        missing = self.missing(memory, seen)
        if missing:
            return Hold(f"{', '.join(missing)} not measured"), memory
        memory = self.learned(memory, seen)
        rate, backlog = self.demand(memory, seen)
        now, here = seen.replicas, seen.replicas.total
        coming = sum(seen.coming or ())
        wanted = self.wanted(memory, seen, rate, backlog, here=here, node_type=self.starting_type())
        if wanted == here or here < wanted <= here + coming:
            more = f", {coming} more on their way" if coming else ""
            return Hold(f"{here} replicas{more}: as needed at {rate:.0f} t/s"), memory
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

    def missing(self, memory: ObjectiveMemory, seen: OperatorObservation) -> list[str]:
        """A load, as a rule. Before any batch has ended there is no other way to know an overload."""
        if memory.batches.model() is None:
            return unmeasured(seen)
        return [] if self._rate(seen) is not None else ["arrival rate"]

    def demand(self, memory: ObjectiveMemory, seen: OperatorObservation) -> tuple[float, float]:
        """The load that replicas asked for now will meet, and the tuples that wait for too long."""
        load = trend(memory.rates)
        waiting = seen.backlog if is_measured(seen.backlog, finite=True) else 0.0
        # Tuples that stay no longer than they may are no backlog (Little's law).
        growing = self._growing(memory, seen, load.rate)
        backlog = max(waiting + growing - load.rate * self._bound_s, 0.0)
        return self._expected(memory, seen, load), backlog

    def wanted(
        self,
        memory: ObjectiveMemory,
        seen: OperatorObservation,
        rate: float,
        backlog: float,
        *,
        here: int,
        node_type: int,
    ) -> int:
        """How many replicas of this type, where `here` of them run."""
        wanted = self.enough(memory, seen, rate, backlog, node_type)
        if wanted >= here:
            return wanted
        # Only as few as would also do for a little more load: else the next interval undoes it.
        return min(self.enough(memory, seen, rate * _CALM, backlog, node_type), here)

    @staticmethod
    def _rate(seen: OperatorObservation) -> float | None:
        known = (seen.offered_rate, seen.arrival_rate)
        return next((rate for rate in known if is_measured(rate, finite=True)), None)

    def learned(self, memory: ObjectiveMemory, seen: OperatorObservation) -> ObjectiveMemory:
        rates, rate = memory.rates, self._rate(seen)
        if rate is not None:
            # The time stands still while a batch lasts, what arrives does not.
            before = [one for one in rates if one[0] < seen.at_s]
            recent = [one for one in before if one[0] > seen.at_s - _TREND_S]
            rates = (*max(recent, before[-_LEAST_READINGS:], key=len), (seen.at_s, rate))
        batches = memory.batches.seen(seen, self.node_types, ready_s=self.ready_s, kept=self.kept)
        return ObjectiveMemory(batches, rates)

    def _growing(self, memory: ObjectiveMemory, seen: OperatorObservation, rate: float) -> float:
        """Tuples that will wait in addition by the time that replicas asked for now are at work."""
        model = memory.batches.model()
        if model is None or model.tuple_s == 0:
            return 0.0
        served = DRAINING * speed_of(seen.replicas, self.node_types) / model.tuple_s
        return max(rate - served, 0.0) * self._comes_within_s(seen)

    def _comes_within_s(self, seen: OperatorObservation) -> float:
        return comes_within_s(seen, self.ready_s)

    def _expected(self, memory: ObjectiveMemory, seen: OperatorObservation, load: Trend) -> float:
        """The load when replicas asked for after these can be at work, if it goes on rising as it does."""
        if load.rise <= 0:
            return load.rate
        interval_s, ready_s = self._interval_s(memory), self._comes_within_s(seen)
        # Where one change has to be done before the next, that comes as much later.
        waits_s = interval_s if seen.coming is not None else max(ready_s, interval_s)
        return load.rate + min(load.rise * (waits_s + ready_s), _MOST_RISE * load.rate)

    @staticmethod
    def _interval_s(memory: ObjectiveMemory) -> float:
        return memory.rates[-1][0] - memory.rates[-2][0] if len(memory.rates) > 1 else 0.0

    @property
    def _bound_s(self) -> float:
        return (1 - self.margin) * self.max_response_time_s

    def enough(
        self,
        memory: ObjectiveMemory,
        seen: OperatorObservation,
        rate: float,
        backlog: float,
        added: int,
        *,
        most: int | None = None,
    ) -> int:
        """The fewest replicas of this type that keep the bound; `most` where not even they do."""
        bound_s, most = self._bound_s, most or self.deployments.max_replicas
        speedup = self.node_types[added].speedup
        drain_s = max(self.drain_s, self.max_response_time_s)
        model = memory.batches.model(trigger_s=seen.trigger_s or 0.0)
        if model is not None:
            return model.replicas_for(
                rate,
                bound_s,
                most=most,
                speed=speedup,
                # Near a full load, batches grow out of all proportion with every tuple nobody expected.
                busiest=1 - self.margin,
                alone_s=self._comes_within_s(seen) + self._interval_s(memory),
                backlog=backlog,
                drain_s=drain_s,
            )
        load = rate + backlog / drain_s
        for count in range(1, min(most, self.deployments.max_replicas) + 1):
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
