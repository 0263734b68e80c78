"""Event, condition, action: the reactive rules that De Matteis 2017 (sec. 5.4) compares itself with.

One replica more when the operator's utilisation is above a threshold, one fewer when it is below another.
"""

from dataclasses import dataclass
from typing import Annotated

from numpy.random import Generator

from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import OperatorObservation
from penstock.perf.deployments import Deployments
from penstock.policy.kernel import mean_utilisation, unmeasured
from penstock.policy.parameters import Param, check_parameters
from penstock.policy.registry import operator_policy


@operator_policy("rule-based")
@dataclass(frozen=True, kw_only=True)
class RuleBased:
    """One replica more above a utilisation, one fewer below another."""

    node_types: tuple[NodeType, ...]
    deployments: Deployments
    high: Annotated[float, Param("utilisation above which it scales out", above=0)] = 0.9
    low: Annotated[float, Param("utilisation below which it scales in", above=0)] = 0.8

    def __post_init__(self) -> None:
        check_parameters(self)
        if not self.low < self.high:
            raise InputError(f"rule-based: low={self.low}, high={self.high}; they must increase")

    def initial(self) -> None:
        return None

    def decide(self, memory: None, seen: OperatorObservation, rng: Generator) -> tuple[Decision, None]:
        if (missing := unmeasured(seen)) or seen.utilisation is None:
            return Hold(f"{', '.join(missing)} not measured"), memory
        load, now = mean_utilisation(seen, seen.utilisation), seen.replicas
        why = f"utilisation {load:.2f} ({self.low:g} to {self.high:g})"
        if load > self.high and now.total < self.deployments.max_replicas:
            return Scale(target=now.changed(0, +1), score=1.0, reason=f"+1: {why}"), memory
        if load < self.low and now.total > 1:
            kind = max(range(len(self.node_types)), key=lambda index: now.counts[index])
            return Scale(target=now.changed(kind, -1), score=1.0, reason=f"-1: {why}"), memory
        return Hold(f"{now.total} replicas: {why}"), memory
