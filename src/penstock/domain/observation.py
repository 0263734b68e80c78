"""What was seen over one control interval: of an operator, of an application, of a node."""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.domain.deployment import Replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorObservation:
    """One operator over one control interval. What was not measured is None, never 0."""

    operator: str
    at_s: float  # end of the interval
    replicas: Replicas
    arrival_rate: float | None  # tuples/s
    response_time_s: float | None  # mean over the interval; infinite when saturated
    utilisation: float | None  # of the busiest replica; above 1 when overloaded


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationObservation:
    """A whole application over one control interval, for its Application Manager."""

    at_s: float
    response_time_s: float | None  # mean from source to sink; infinite when saturated
    operators: tuple[OperatorObservation, ...]
    source_rate: float | None = None  # tuples/s of every source that want to come in


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObservation:
    """One node over one control interval, for its Node Manager."""

    node: str
    node_type: int  # index in the infrastructure's types
    at_s: float
    utilisation: float | None
    hosted: tuple[str, ...]  # operator of every replica on it
    free_slots: int
    delay_s: Mapping[str, float]  # estimated network delay to the nodes it knows
