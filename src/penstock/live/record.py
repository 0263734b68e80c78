"""What a live run measured, interval by interval, and its summary."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from penstock.control.safety_settings import FULL_HOST
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import ApplicationObservation
from penstock.reconfigure.words import Ending, Record
from penstock.runtimes.spark.measures import waits


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """One control interval as it is kept: an observation, what was done, and why."""

    seen: ApplicationObservation
    reasons: tuple[str, ...]  # of what was decided or vetoed
    changed: tuple[str, ...]  # what was started
    spares: int = 0  # executors that waited to become replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A run in a few figures; None where nothing was measured."""

    application: str
    policy: str
    finished: bool  # the whole input was processed, or the time was up
    seconds: float
    tuples: int  # that left the application
    unfinished: int  # that had come in and were still inside at the end; response times count them, too
    violations_pct: float | None  # of intervals, over the objective on average
    violations_after_first_minute_pct: float | None
    response_time_p50_s: float | None
    response_time_p95_s: float | None
    response_time_p99_s: float | None
    average_replicas: float
    replica_seconds: float
    cost: float  # price of the replicas, per hour each, over the run
    reconfigurations: int
    downtime_pct: float  # of the time, any query stopped for a reconfiguration
    replica_changes: int  # from one interval to the next, of an operator's replicas, whoever changed them
    host_full_pct: float | None = None  # of intervals, no CPU left on any host that replicas ran on
    failures: tuple[str, ...] = ()  # of queries that were started again: how often each failed, and why last

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def summary(
    *,
    application: str,
    policy: str,
    finished: bool,
    objective_s: float,
    intervals: Sequence[Interval],
    response_times: Sequence[tuple[float, int]],
    unfinished: Sequence[tuple[float, int]] = (),
    records: Sequence[Record],
    node_types: Sequence[NodeType],
    began_s: float,
    seconds: float,
    failures: Sequence[str] = (),
) -> Summary:
    """`response_times` has (response time, tuples) of everything that left the application.

    `unfinished` has the same of what was still inside: at least so long did it take.
    """
    settled = [interval for interval in intervals if interval.seen.at_s - began_s > 60]
    replica_s, cost, before_s = 0.0, 0.0, began_s
    for interval in intervals:
        length_s = max(interval.seen.at_s - before_s, 0.0)
        before_s = interval.seen.at_s
        replica_s += interval.spares * length_s
        cost += interval.spares * node_types[0].price * length_s / 3600
        for operator in interval.seen.operators:
            replica_s += operator.replicas.total * length_s
            prices = zip(operator.replicas.counts, node_types, strict=True)
            cost += sum(count * kind.price for count, kind in prices) * length_s / 3600
    every = (*response_times, *unfinished)
    overall = waits([(0.0, tuple((-response_s, tuples) for response_s, tuples in every))])
    changes = [record for record in records if record.outcome in (Ending.DONE, Ending.PARTLY)]
    return Summary(
        application=application,
        policy=policy,
        finished=finished,
        seconds=seconds,
        tuples=sum(tuples for _, tuples in response_times),
        unfinished=sum(tuples for _, tuples in unfinished),
        violations_pct=late_pct(intervals, objective_s),
        violations_after_first_minute_pct=late_pct(settled, objective_s),
        response_time_p50_s=overall.p50_s,
        response_time_p95_s=overall.p95_s,
        response_time_p99_s=overall.p99_s,
        average_replicas=replica_s / (before_s - began_s) if before_s > began_s else 0.0,
        replica_seconds=replica_s,
        cost=cost,
        reconfigurations=sum(1 for record in changes if not record.repair),
        downtime_pct=100 * sum(record.downtime_s for record in records) / seconds if seconds else 0.0,
        replica_changes=sum(
            one.replicas != before.replicas
            for first, second in pairwise(intervals)
            for before, one in zip(first.seen.operators, second.seen.operators, strict=True)
        ),
        host_full_pct=host_full_pct(intervals),
        failures=tuple(failures),
    )


def late_pct(intervals: Sequence[Interval], objective_s: float) -> float | None:
    """Share of intervals over the objective; one without results is late if tuples have waited too long."""
    judged = [seen for interval in intervals if (seen := response_of(interval)) is not None]
    return 100 * sum(1 for seconds in judged if seconds > objective_s) / len(judged) if judged else None


def host_full_pct(intervals: Sequence[Interval]) -> float | None:
    """Share of intervals in which every host was full, of those in which that was measured."""
    judged = [load for interval in intervals if (load := _host_load(interval)) is not None]
    return 100 * sum(1 for load in judged if load >= FULL_HOST) / len(judged) if judged else None


def _host_load(interval: Interval) -> float | None:
    """Of the least busy host: where that has no CPU left, none has."""
    return min((interval.seen.host_loads or {}).values(), default=None)


def response_of(interval: Interval) -> float | None:
    """From source to sink; where nothing came out, the longest time any operator kept its tuples waiting."""
    seen = interval.seen
    if seen.response_time_s is not None:
        return seen.response_time_s
    return max((o.response_time_s for o in seen.operators if o.response_time_s is not None), default=None)


def row(interval: Interval, began_s: float) -> dict[str, Any]:
    """One interval as a flat row, for a table; times from the start of the run."""
    seen = interval.seen
    cells: dict[str, Any] = {
        "at_s": seen.at_s - began_s,
        "source_rate": seen.source_rate,
        "response_time_s": seen.response_time_s,
        "response_time_p50_s": seen.response_time_p50_s,
        "response_time_p95_s": seen.response_time_p95_s,
        "response_time_p99_s": seen.response_time_p99_s,
        "host_load": _host_load(interval),
        "changed": "; ".join(interval.changed),
        "reasons": "; ".join(interval.reasons),
    }
    for one in seen.operators:
        cells |= {
            f"{one.operator}.{name}": value
            for name, value in (
                ("replicas", one.replicas.total),
                ("arrival_rate", one.arrival_rate),
                ("response_time_s", one.response_time_s),
                ("response_time_p95_s", one.response_time_p95_s),
                ("service_time_s", one.service_time_s),
                ("service_variance_s2", one.service_variance_s2),
                ("utilisation", one.utilisation),
                ("backlog", one.backlog),
                ("skew", one.skew),
                ("computing", one.computing),
            )
        }
    return cells
