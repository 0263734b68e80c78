"""What a fixed number of replicas would have done under the load of a run.

Not measured but worked out, with the model of micro-batches (`perf/micro_batch.py`) that this very run
calibrates: as many replicas as the peak of the load needs, or its mean, from the first to the last minute.
Of a run too long to be kept, all of this is of its latest part.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import ceil, inf
from statistics import median
from typing import NamedTuple

from penstock.domain.application import Application
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import OperatorObservation
from penstock.live.record import Interval
from penstock.live.tally import replicas_of
from penstock.perf.micro_batch import Batch, MicroBatches, calibrated
from penstock.runtimes.spark.measures import waits

STATIC_UTILISATION = 0.75  # that static provisioning plans for


class Moved(NamedTuple):
    """Tuples that came to an operator together."""

    at_s: float
    entered_s: float  # the application
    tuples: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """Operators that work on the same micro-batches, one after the other; a single one as a rule."""

    operators: tuple[str, ...]
    fixed_s: float
    tuple_s: Mapping[str, float]  # of each operator for a tuple of a source, on one replica
    trigger_s: float = 0.0

    def batches(self, replicas: Mapping[str, int]) -> MicroBatches:
        """What they take with these replicas."""
        each_s = sum(self.tuple_s[name] / replicas[name] for name in self.operators)
        return MicroBatches(fixed_s=self.fixed_s, tuple_s=each_s, trigger_s=self.trigger_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """One number of replicas for every operator, and what came of it."""

    replicas: Mapping[str, int]
    violations_pct: float
    response_time_p50_s: float | None
    response_time_p95_s: float | None
    replica_seconds: float
    run_replica_seconds: float  # of the run itself, over the same time
    part_s: float | None = None  # how long the latest part of the run was that this is of; None: of all


def would_have_done(
    graph: Application,
    intervals: Sequence[Interval],
    node_types: Sequence[NodeType],
    objective_s: float,
    together: Sequence[tuple[str, ...]] = (),
    *,
    is_all: bool = True,
) -> dict[str, Fixed]:
    """For the peak of the load and for its mean; nothing where the run has not measured every operator.

    Where the intervals are not all there were, it is of their time only: also peak and mean.
    """
    models = models_of(intervals, node_types)
    rates = [interval.seen.source_rate for interval in intervals if interval.seen.source_rate is not None]
    if set(models) != {one.name for one in graph.operators} or not rates:
        return {}
    stations = stations_of(graph, models, intervals, node_types, together)
    found = {
        name: _run(graph, stations, replicas_at(graph, stations, rate, objective_s), intervals, objective_s)
        for name, rate in (("static peak", max(rates)), ("static mean", sum(rates) / len(rates)))
    }
    times = _times_of(intervals)
    part_s = None if is_all else times[-1][1] - times[0][0]
    return {name: replace(one, part_s=part_s) for name, one in found.items()}


def stations_of(
    graph: Application,
    models: Mapping[str, MicroBatches],
    intervals: Sequence[Interval],
    node_types: Sequence[NodeType],
    together: Sequence[tuple[str, ...]],
) -> list[Station]:
    """In the order of the graph."""
    visits = visits_of(graph, intervals)
    triggers = [one.trigger_s for interval in intervals for one in interval.seen.operators if one.trigger_s]
    shared = {name: group for group in together for name in group}
    groups = dict.fromkeys(shared.get(one.name, (one.name,)) for one in graph.in_order)
    return [
        Station(
            operators=group,
            fixed_s=models[group[0]].fixed_s
            if len(group) == 1
            else _fixed_s(group, models, intervals, node_types),
            tuple_s={name: visits[name] * models[name].tuple_s for name in group},
            trigger_s=triggers[-1] if triggers else 0.0,
        )
        for group in groups
    ]


def visits_of(graph: Application, intervals: Sequence[Interval]) -> dict[str, float]:
    """Tuples that come to every operator for each one that a source brings, by what operators passed on."""
    taken, given = dict[str, float](), dict[str, float]()
    for interval in intervals:
        for one in interval.seen.operators:
            if one.selectivity is not None and one.batch_tuples:
                taken[one.operator] = taken.get(one.operator, 0.0) + one.batch_tuples
                left = one.selectivity * one.batch_tuples
                given[one.operator] = given.get(one.operator, 0.0) + left
    visits, leaving = dict[str, float](), {source.name: 1.0 for source in graph.sources}
    for operator in graph.in_order:
        name = operator.name
        visits[name] = sum(leaving[origin] for origin in graph.upstream(name))
        leaving[name] = visits[name] * (given[name] / taken[name] if name in taken else 1.0)
    return visits


def _fixed_s(
    group: Sequence[str],
    models: Mapping[str, MicroBatches],
    intervals: Sequence[Interval],
    node_types: Sequence[NodeType],
) -> float:
    """What a micro-batch of them all takes besides their work on tuples, as a rule."""
    left: list[float] = []
    for interval in intervals:
        seen = [one for one in interval.seen.operators if one.operator in group]
        lengths = [one.batch_s for one in seen if one.batch_s is not None and one.batch_tuples]
        if len(lengths) == len(group):
            work_s = sum(
                models[one.operator].tuple_s * (one.batch_tuples or 0.0) / _speed(one, node_types)
                for one in seen
            )
            left.append(max(lengths[0] - work_s, 0.0))
    return median(left) if left else models[group[0]].fixed_s


def _speed(one: OperatorObservation, node_types: Sequence[NodeType]) -> float:
    return sum(n * kind.speedup for n, kind in zip(one.replicas.counts, node_types, strict=True))


def models_of(intervals: Sequence[Interval], node_types: Sequence[NodeType]) -> dict[str, MicroBatches]:
    """What the micro-batches of every operator took in this run."""
    batches: dict[str, list[Batch]] = {}
    service: dict[str, list[float | None]] = {}
    for interval in intervals:
        for one in interval.seen.operators:
            if one.batch_s is not None and one.batch_tuples:
                batch = Batch(one.batch_tuples, _speed(one, node_types), one.batch_s)
                batches.setdefault(one.operator, []).append(batch)
                service.setdefault(one.operator, []).append(one.service_time_s)
    found = {name: calibrated(those, tuples_s=service[name]).model() for name, those in batches.items()}
    return {name: model for name, model in found.items() if model is not None}


def replicas_at(
    graph: Application, stations: Sequence[Station], rate: float, objective_s: float
) -> dict[str, int]:
    """Replicas that carry this load with some room, and the fewest more that are predicted to keep the
    slowest path inside, one by one where it helps most."""
    tuple_s = {name: seconds for station in stations for name, seconds in station.tuple_s.items()}
    replicas = {
        one.name: min(max(ceil(rate * tuple_s[one.name] / STATIC_UTILISATION), 1), one.max_replicas)
        for one in graph.operators
    }

    def response_s(of: Mapping[str, int]) -> float:
        return max(
            sum(
                station.batches(of).response_time_s(rate, 1)
                for station in stations
                if any(name in path for name in station.operators)
            )
            for path in graph.paths
        )

    def load(of: Mapping[str, int]) -> float:
        return sum((tuple_s[name] * rate / count) ** 2 for name, count in of.items())

    while response_s(replicas) > objective_s:
        more = [
            {**replicas, one.name: replicas[one.name] + 1}
            for one in graph.operators
            if replicas[one.name] < one.max_replicas
        ]
        if not more:
            break
        # Where several are overloaded, none helps alone: then the most loaded one.
        replicas = min(more, key=lambda of: (response_s(of), load(of)))
    return replicas


def through(model: MicroBatches, arriving: Sequence[Moved]) -> list[Moved]:
    """One micro-batch after another, each with all that has come by the time it begins."""
    left: list[Moved] = []
    waiting = sorted(arriving)
    free_s, begins_s, next_one = -inf, -inf, 0
    while next_one < len(waiting):
        begins_s = max(free_s, waiting[next_one].at_s, begins_s + model.trigger_s)
        last = next_one
        while last < len(waiting) and waiting[last].at_s <= begins_s:
            last += 1
        taken = waiting[next_one:last]
        free_s = begins_s + model.fixed_s + model.tuple_s * sum(one.tuples for one in taken)
        left += [one._replace(at_s=free_s) for one in taken]
        next_one = last
    return left


def _run(
    graph: Application,
    stations: Sequence[Station],
    replicas: Mapping[str, int],
    intervals: Sequence[Interval],
    objective_s: float,
) -> Fixed:
    """Load that came in an interval came in five parts, evenly.

    Every stream has all of it, in tuples of a source, whatever became of them: how much work they are to an
    operator is in its time per tuple.
    """
    times = _times_of(intervals)
    entering: list[Moved] = []
    for (begin_s, end_s), interval in zip(times, intervals, strict=True):
        step_s = (end_s - begin_s) / 5
        for part in range(5):
            at_s = begin_s + (part + 0.5) * step_s
            entering.append(Moved(at_s, at_s, (interval.seen.source_rate or 0.0) * step_s))
    streams: dict[str, list[Moved]] = {source.name: entering for source in graph.sources}
    for station in stations:
        first, last = station.operators[0], station.operators[-1]
        origins = graph.upstream(first)
        arriving = [
            moved._replace(tuples=moved.tuples / len(origins))
            for origin in origins
            for moved in streams[origin]
        ]
        streams[last] = through(station.batches(replicas), arriving)
    ended = [
        moved for sink in graph.sinks for origin in graph.upstream(sink.name) for moved in streams[origin]
    ]
    late = late_in(ended, times, objective_s)
    # In thousandths: a part of a low load is less than one tuple.
    overall = waits((one.at_s, ((one.entered_s, round(1000 * one.tuples)),)) for one in ended)
    return Fixed(
        replicas=replicas,
        violations_pct=100 * sum(late) / len(late),
        response_time_p50_s=overall.p50_s,
        response_time_p95_s=overall.p95_s,
        replica_seconds=sum(replicas.values()) * (times[-1][1] - times[0][0]),
        run_replica_seconds=sum(
            replicas_of(interval) * (end_s - begin_s)
            for (begin_s, end_s), interval in zip(times, intervals, strict=True)
        ),
    )


def _times_of(intervals: Sequence[Interval]) -> list[tuple[float, float]]:
    """When each began and ended."""
    ends = [interval.seen.at_s for interval in intervals]
    first_s = ends[0] - (ends[1] - ends[0]) if len(ends) > 1 else ends[0] - 1.0
    return list(pairwise([first_s, *ends]))


def late_in(ended: Sequence[Moved], times: Sequence[tuple[float, float]], objective_s: float) -> list[bool]:
    """As measured intervals are judged: the mean of what came out, else the oldest that is still inside."""
    left = sorted(one for one in ended if one.tuples)
    at_s = [one.at_s for one in left]
    # Of what comes out after each: the oldest.
    oldest_s = [*accumulate((one.entered_s for one in reversed(left)), min)][::-1]
    late: list[bool] = []
    for begin_s, end_s in times:
        first, after = bisect_right(at_s, begin_s), bisect_right(at_s, end_s)
        if out := left[first:after]:
            total = sum(one.tuples for one in out)
            mean_s = sum((one.at_s - one.entered_s) * one.tuples for one in out) / total
            late.append(mean_s > objective_s)
        else:
            late.append(after < len(left) and end_s - oldest_s[after] > objective_s)
    return late
