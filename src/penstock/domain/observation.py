"""What was seen of one operator over one control interval."""

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
