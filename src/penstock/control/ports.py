"""The ports between the control loop and the world."""

from typing import Protocol

from penstock.control.journal import Entry
from penstock.domain.observation import ApplicationObservation
from penstock.domain.request import Verdict


class Monitor(Protocol):
    """Observes. What could not be measured is None in the observation, never 0."""

    def observe(self) -> ApplicationObservation: ...


class Actuator(Protocol):
    """Starts what is granted and returns; granting nothing is not an action.

    A change that fails, or is not finished, shows in later observations.
    """

    def apply(self, verdict: Verdict) -> None: ...


class Journal(Protocol):
    """Records what was seen and decided before it is done. Raises if it cannot be written down."""

    def append(self, entry: Entry) -> None: ...


class Unwritten:
    """A journal that keeps nothing, for simulations that nobody replays."""

    def append(self, entry: Entry) -> None:
        pass
