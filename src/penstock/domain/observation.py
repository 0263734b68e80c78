"""What was seen over one control interval: of an operator, of an application, of a node.

Named tuples, not dataclasses: a simulated interval makes one of every operator, and a frozen
dataclass of so many fields takes three times as long. They are made by keyword all the same.
"""

from collections.abc import Mapping
from typing import NamedTuple

from penstock.domain.deployment import Replicas


class OperatorObservation(NamedTuple):
    """One operator over one control interval. What was not measured is None, never 0."""

    operator: str
    at_s: float  # end of the interval
    replicas: Replicas
    arrival_rate: float | None  # tuples/s
    response_time_s: float | None  # mean over the interval; infinite when saturated
    utilisation: float | None  # of the busiest replica; above 1 when overloaded
    response_time_p95_s: float | None = None
    service_time_s: float | None = None  # mean per tuple, on the nodes it ran on
    service_variance_s2: float | None = None
    backlog: float | None = None  # tuples waiting at the end of the interval
    selectivity: float | None = None  # tuples out per tuple in
    skew: float | None = None  # load of the busiest replica over the mean of all
    utilisation_by_replica: tuple[float, ...] | None = None
    batch_s: float | None = None  # mean duration of the micro-batches that ended, where there are any
    batch_tuples: float | None = None  # mean number of tuples in them
    batch_tasks_s: float | None = None  # time in tasks of one, whatever is in it, which replicas share
    batch_replicas: float | None = None  # mean number of replicas that shared one: not those just come
    trigger_s: float | None = None  # one begins this long after the one before it, at the earliest
    useful_replicas: int | None = None  # more have nothing to do: there are no more tasks to share
    ready_s: float | None = None  # from asking for a replica to its first tuples, lately
    computing: float | None = None  # CPU used or queued for, per second at work: 0 waits for others
    # What the sources bring now, as it will arrive here once it is through the operators before.
    offered_rate: float | None = None  # tuples/s
    # Replicas of each type asked for and not there yet, while more may be; None: one change at a time.
    coming: tuple[int, ...] | None = None
    held_back: float | None = None  # share of time in which full queues kept tuples from coming in
    arrival_scv: float | None = None  # squared coefficient of variation of the time between arrivals
    # Tuples/s expected to arrive in each of the next intervals, where a forecaster is at work.
    forecast: tuple[float, ...] | None = None
    forecast_interval_s: float | None = None  # how long each of these is


class ApplicationObservation(NamedTuple):
    """A whole application over one control interval, for its Application Manager."""

    at_s: float  # now; an operator not heard of since has an earlier time of its own
    response_time_s: float | None  # mean from source to sink; infinite when saturated
    operators: tuple[OperatorObservation, ...]
    # Where paths have limits of their own: the worst path's time, as if its limit were the tightest.
    strictest_s: float | None = None
    source_rate: float | None = None  # tuples/s of every source that want to come in
    response_time_p50_s: float | None = None
    response_time_p95_s: float | None = None
    response_time_p99_s: float | None = None
    reconfiguring: tuple[str, ...] = ()  # operators whose last change is not finished
    nodes: "Mapping[str, NodeObservation] | None" = None  # by name, where placement matters
    hosts: Mapping[str, tuple[str, ...]] | None = None  # operator -> node of each of its replicas
    host_loads: Mapping[str, float] | None = None  # share of its CPU busy, by host that replicas run on


class NodeObservation(NamedTuple):
    """One node over one control interval, for its Node Manager."""

    node: str
    node_type: int  # index in the infrastructure's types
    at_s: float
    utilisation: float | None
    hosted: tuple[str, ...]  # operator of every replica on it
    free_slots: int
    delay_s: Mapping[str, float]  # estimated network delay to the nodes it knows
