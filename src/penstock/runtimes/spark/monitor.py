"""Sees an application on Spark: every interval, what its chains did and how they are."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from penstock.domain.deployment import Replicas
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.runtimes.spark import steady
from penstock.runtimes.spark.executors import Executor
from penstock.runtimes.spark.host_load import CpuUse, HostLoads, here
from penstock.runtimes.spark.measures import Busyness, mean_of, service, skew, total_of, waits, with_overload
from penstock.runtimes.spark.nodes import Node
from penstock.runtimes.spark.running import MONITOR, BatchReport, RunningApp
from penstock.runtimes.spark.stream_log import Batch
from penstock.runtimes.spark.topology import Chain

_KEPT = 0.9  # of what is known of selectivities, per micro-batch


@dataclass
class _Lumps:
    """What an operator gives comes in lumps, one per micro-batch."""

    last_s: float | None = None  # when the latest came

    def since(self, at_s: float) -> float | None:
        """How long before one that comes now the latest came; None before the first."""
        before_s, self.last_s = self.last_s, at_s
        return None if before_s is None else at_s - before_s

    def rate(self, tuples: int, at_s: float, took_s: float, interval_s: float) -> float:
        """Of a lump that comes now: spread over the time since the one before it, which may be longer than
        an interval. After a time without work, what comes has not been gathering all that time."""
        since_s = self.since(at_s)
        spread_s = interval_s if since_s is None else since_s
        return tuples / min(max(spread_s, took_s), max(interval_s, 2 * took_s))


@dataclass
class _Seen:
    """Batches of one stream that not every reader has taken yet."""

    next_batch: int
    waiting: dict[int, Batch] = field(default_factory=dict)
    lumps: _Lumps = field(default_factory=_Lumps)


@dataclass
class _PassedOn:
    """Tuples that leave a chain for each that comes in, later micro-batches counting more."""

    came: float = 0.0
    left: float = 0.0

    def batch(self, tuples_in: int, tuples_out: int) -> None:
        self.came = _KEPT * self.came + tuples_in
        self.left = _KEPT * self.left + tuples_out

    @property
    def share(self) -> float | None:
        return self.left / self.came if self.came else None


class _Arrived(NamedTuple):
    """What came to a stream since the last look."""

    tuples: int
    rate: float | None  # tuples/s; None while the operator before is in the middle of a micro-batch


class Replicated(Protocol):
    """Knows where replicas run: the actuator, or whoever counts them where others decide."""

    def executors(self) -> Mapping[str, Executor | None]:
        """By node; looked at before anything else in an interval."""

    def nodes(self, chain: str) -> tuple[Node, ...]:
        """Where the chain's replicas run, one each."""

    def ready_s(self, chain: str) -> float | None:
        """How long the chain's latest replica took to come and work."""

    def coming(self, chain: str) -> tuple[int, ...] | None:
        """Replicas of each type asked for and not there yet; None where no more can be asked for."""

    @property
    def reconfiguring(self) -> tuple[str, ...]:
        """Chains whose last change is not finished."""


class SparkMonitor:
    """Reads what the queries measured; an interval without a finished micro-batch has no sample."""

    def __init__(
        self,
        running: RunningApp,
        actuator: Replicated,
        node_types: Sequence[str],
    ) -> None:
        self._running, self._actuator = running, actuator
        self._kinds = list(node_types)
        self._deployed: dict[str, Replicas] = {}
        self._last_s = steady.now_s()
        # When the last interval ended in which something of a chain was measured; the start without one.
        self._measured_s = dict.fromkeys(running.chains, self._last_s)
        self._finished: list[tuple[float, int]] = []
        self._busyness = {name: Busyness() for name in running.chains}
        self._cpu_use = {name: CpuUse() for name in running.chains}
        self._host_loads = HostLoads()
        self._reached = {
            name: {stream: running.log(stream).needs(query.chains[0].name) for stream in query.inputs}
            for name, query in running.query_of.items()
        }
        self._tuples_each = dict.fromkeys(running.chains, 1.0)
        self._inside = {name: _Lumps() for name in running.chains}  # of chains within a query
        self._passed_on = {name: _PassedOn() for name in running.chains}
        self._streams = {
            stream: self._seen_before(stream)
            for stream in {stream for query in running.plan.values() for stream in query.inputs}
        }

    def _seen_before(self, stream: str) -> _Seen:
        """By an earlier driver; some of it may still be waiting."""
        log = self._running.log(stream)
        seen = log.needs(MONITOR)
        least = min((at[stream] for at in self._reached.values() if stream in at), default=seen)
        return _Seen(seen, {batch.number: batch for batch in log.batches(min(least, seen), seen)})

    def observe(self) -> ApplicationObservation:
        now_s = steady.now_s()
        interval_s = now_s - self._last_s
        there = self._actuator.executors()
        reports = self._running.measurements.take()
        for report in reports:
            self._reached[report.chain].update(report.reached)
        new = {stream: self._new_batches(stream) for stream in self._streams}
        arrived = {stream: self._arrived(stream, new[stream], interval_s, reports) for stream in new}
        offered = self._offered(arrived, reports)
        operators = tuple(
            self._operator(chain, now_s, interval_s, arrived, reports, there)._replace(
                offered_rate=offered[chain.name]
            )
            for chain in self._running.chains.values()
        )
        self._last_s = now_s
        # A tuple that leads to no result is also done once the last operator has dealt with it.
        left = [
            (report.ended_s, report.finished)
            for report in reports
            if self._running.chains[report.chain].output in self._running.app.sinks.values()
        ]
        self._finished += [(end - begin, tuples) for end, began in left for begin, tuples in began]
        took = waits(left)
        sources = [arrived[source].tuples for source in self._running.app.sources if source in arrived]
        return ApplicationObservation(
            at_s=now_s,
            response_time_s=took.mean_s,
            operators=operators,
            # Per source, as in the simulator; a single one as a rule.
            source_rate=sum(sources) / len(sources) / interval_s if sources and interval_s > 0 else None,
            response_time_p50_s=took.p50_s,
            response_time_p95_s=took.p95_s,
            response_time_p99_s=took.p99_s,
            reconfiguring=self._actuator.reconfiguring,
            host_loads=self._host_loads.over(
                [task for report in reports for task in report.tasks],
                here(),
                [one.id for one in there.values() if one is not None],
            ),
        )

    def finished(self) -> list[tuple[float, int]]:
        """(response time, tuples) of all that left the application since the last call."""
        finished, self._finished = self._finished, []
        return finished

    def unfinished(self) -> list[tuple[float, int]]:
        """(time since they came, tuples) of all that is still inside; a tuple with two ways to go is one."""
        inside: dict[float, int] = {}
        for query in self._running.plan.values():
            for batch in self._waiting(query.chains[0]):
                for began_s, tuples in batch.origins:
                    inside[began_s] = max(inside.get(began_s, 0), tuples)
        now_s = time.time()
        return [(now_s - began_s, tuples) for began_s, tuples in inside.items() if tuples]

    def _new_batches(self, stream: str) -> list[Batch]:
        """Published to a stream since the last look."""
        seen, log = self._streams[stream], self._running.log(stream)
        end = log.end(seen.next_batch)
        new = log.batches(seen.next_batch, end)
        seen.waiting.update({batch.number: batch for batch in new})
        seen.next_batch = end
        log.passed(MONITOR, end)
        return new

    def _arrived(
        self, stream: str, new: Sequence[Batch], interval_s: float, reports: Sequence[BatchReport]
    ) -> _Arrived:
        """At a stream in a log."""
        tuples = sum(batch.tuples for batch in new)
        if not interval_s > 0:
            return _Arrived(tuples, None)
        before = next((one for one in self._running.chains.values() if one.output == stream), None)
        if before is None:
            # A feeder brings a few tuples at a time: counted from one time to the other.
            lumps = self._streams[stream].lumps
            spread_s = lumps.since(new[-1].published_at_s) if new else None
            at_most_s, at_least_s = 2 * interval_s, interval_s / 2
            return _Arrived(tuples, tuples / min(max(spread_s or interval_s, at_least_s), at_most_s))
        if not tuples:
            return _Arrived(0, self._nothing_from(before))
        lumps, took_s = self._streams[stream].lumps, _longest_s(reports, before)
        return _Arrived(tuples, lumps.rate(tuples, new[-1].published_at_s, took_s, interval_s))

    def _arrived_inside(self, chain: Chain, interval_s: float, mine: Sequence[BatchReport]) -> _Arrived:
        """At a chain that follows another in its query."""
        tuples = sum(report.tuples_in for report in mine)
        if not interval_s > 0:
            return _Arrived(tuples, None)
        if not tuples:
            return _Arrived(0, self._nothing_from(chain))
        took_s = _longest_s(mine, chain)
        return _Arrived(tuples, self._inside[chain.name].rate(tuples, mine[-1].ended_s, took_s, interval_s))

    def _nothing_from(self, chain: Chain) -> float | None:
        """Nothing came of it: it has nothing to do, or is in the middle of a micro-batch."""
        return None if any(batch.tuples for batch in self._waiting(chain)) else 0.0

    def _offered(
        self, arrived: Mapping[str, _Arrived], reports: Sequence[BatchReport]
    ) -> dict[str, float | None]:
        """What reaches every chain in the long run at the sources' present load: a source's rate passes from
        chain to chain, times what each passes on of a tuple."""
        for report in reports:
            self._passed_on[report.chain].batch(report.tuples_in, report.tuples_out)
        rates = {source: arrived[source].rate for source in self._running.app.sources if source in arrived}
        offered: dict[str, float | None] = {}
        for name, chain in self._running.chains.items():
            offered[name] = rate = total_of([rates.get(stream) for stream in chain.inputs])
            share = self._passed_on[name].share
            rates[chain.output] = None if rate is None or share is None else rate * share
        return offered

    def _operator(
        self,
        chain: Chain,
        now_s: float,
        interval_s: float,
        arrived: Mapping[str, _Arrived],
        reports: Sequence[BatchReport],
        there: Mapping[str, Executor | None],
    ) -> OperatorObservation:
        wall_s = time.time()  # as tuples and tasks have it
        mine = [report for report in reports if report.chain == chain.name]
        took = waits((report.ended_s, report.waited) for report in mine)
        served = service(
            ((report.tuples_in, (*report.entries, *report.tasks)) for report in mine),
            one_stage=not chain.stateful,
        )
        nodes = self._actuator.nodes(chain.name)
        executors = [found.id for node in nodes if (found := there.get(node.name)) is not None]
        if nodes:  # else all were lost, and the last known is what is being repaired
            counts = tuple(sum(1 for node in nodes if node.kind == kind) for kind in self._kinds)
            self._deployed[chain.name] = Replicas(counts)
        waiting = self._waiting(chain)
        query = self._running.query_of[chain.name]
        if chain is query.chains[0]:
            arrivals = [arrived[stream] for stream in chain.inputs]
        else:
            arrivals = [self._arrived_inside(chain, interval_s, mine)]
        busyness = self._busyness[chain.name]
        if mine or waiting or any(one.tuples for one in arrivals):
            loads = busyness.over(executors, [(one.ended_s, (*one.entries, *one.tasks)) for one in mine])
        else:
            loads = busyness.idle(executors, wall_s)
        rate = total_of([one.rate for one in arrivals])
        loads = with_overload(loads, rate, served.mean_s)
        # A chain is measured when a micro-batch ended, or when it had nothing to do. One that hangs with
        # input waiting is not: how long that has waited is known, but not what the replicas do, and its
        # tasks are dealt out already, so that more replicas would not end it. So its time stands still,
        # until the safety chain finds it too old to decide on.
        if mine or loads is not None:
            self._measured_s[chain.name] = now_s
        # Nothing finished but something waits: it takes at least as long as the oldest has waited.
        oldest_s = min((batch.published_at_s for batch in waiting if batch.tuples), default=None)
        response = took.mean_s if oldest_s is None or took.mean_s is not None else wall_s - oldest_s
        return OperatorObservation(
            operator=chain.name,
            at_s=self._measured_s[chain.name],
            replicas=self._deployed[chain.name],
            arrival_rate=rate,
            response_time_s=response,
            utilisation=max(loads) if loads else None,
            response_time_p95_s=took.p95_s,
            service_time_s=served.mean_s,
            service_variance_s2=served.variance_s2,
            backlog=self._per_tuple(chain, reports) * sum(batch.tuples for batch in waiting),
            selectivity=_selectivity(mine),
            skew=skew([load for load in loads or () if load]),  # a new replica has had nothing yet
            utilisation_by_replica=loads,
            batch_s=mean_of([report.ended_s - report.began_s for report in mine]),
            batch_tuples=mean_of([report.tuples_in for report in mine]),
            batch_replicas=mean_of([_sharing(report) for report in mine if report.tuples_in]),
            trigger_s=self._running.trigger_s,
            ready_s=self._actuator.ready_s(chain.name),
            coming=self._actuator.coming(chain.name),
            computing=self._cpu_use[chain.name].over(
                [entry for report in mine for entry in report.entries],
                [task for report in mine for task in report.tasks],
            ),
        )

    def _per_tuple(self, chain: Chain, reports: Sequence[BatchReport]) -> float:
        """Tuples that come to a chain for each one that comes to its query."""
        first = self._running.query_of[chain.name].chains[0]
        came = {
            one.name: sum(report.tuples_in for report in reports if report.chain == one.name)
            for one in (first, chain)
        }
        if came[first.name]:
            self._tuples_each[chain.name] = came[chain.name] / came[first.name]
        return self._tuples_each[chain.name]

    def _waiting(self, chain: Chain) -> list[Batch]:
        """Batches published to a chain's query that it has not finished."""
        left: list[Batch] = []
        for stream in self._running.query_of[chain.name].inputs:
            seen = self._streams[stream]
            least = min(at[stream] for at in self._reached.values() if stream in at)
            seen.waiting = {number: batch for number, batch in seen.waiting.items() if number >= least}
            mine = self._reached[chain.name][stream]
            left += [batch for number, batch in seen.waiting.items() if number >= mine]
        return left


def _sharing(report: BatchReport) -> int:
    """Executors that had a task of a micro-batch."""
    return len({one.executor for one in report.entries} | {one.executor for one in report.tasks})


def _longest_s(reports: Sequence[BatchReport], chain: Chain) -> float:
    return max((one.ended_s - one.began_s for one in reports if one.chain == chain.name), default=0.0)


def _selectivity(reports: Sequence[BatchReport]) -> float | None:
    """Tuples that left per tuple that came in, over these micro-batches."""
    taken = sum(report.tuples_in for report in reports)
    return sum(report.tuples_out for report in reports) / taken if taken else None
