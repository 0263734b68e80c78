"""What a live run measured in an interval, and what is told of it at the end."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from penstock.domain.observation import ApplicationObservation


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
    given_up: int = 0  # tuples of results that no writer took and that were more than was to be kept
    failures: tuple[str, ...] = ()  # of queries that were started again: how often each failed, and why last

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def late_pct(intervals: Sequence[Interval], objective_s: float) -> float | None:
    """Share of intervals over the objective; one without results is late if tuples have waited too long."""
    judged = [seen for interval in intervals if (seen := response_of(interval)) is not None]
    return 100 * sum(1 for seconds in judged if seconds > objective_s) / len(judged) if judged else None


def host_load(interval: Interval) -> float | None:
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
        "host_load": host_load(interval),
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
