"""The doors between the control loop and the world."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from penstock.domain.decision import Decision
from penstock.domain.observation import OperatorObservation

Plan = Mapping[str, Decision]  # by operator


class Monitor(Protocol):
    """Sees. What could not be measured is None in the observation, never 0."""

    def observe(self) -> Sequence[OperatorObservation]: ...


class Actuator(Protocol):
    """Acts. Holding is not an action; a failure shows in the next observation."""

    def apply(self, plan: Plan) -> None: ...


class Journal(Protocol):
    """Remembers what was seen and decided, before it is done."""

    def append(self, seen: Sequence[OperatorObservation], plan: Plan) -> None: ...
