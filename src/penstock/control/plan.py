"""One round of the control loop, written down: what was decided, asked for, granted and vetoed."""

from collections.abc import Mapping
from typing import NamedTuple

from penstock.domain.decision import Decision
from penstock.domain.request import Refused, Request, Verdict


class Plan(NamedTuple):
    """Everything from the Operator Managers' decisions to what is to be done, with every reason."""

    decisions: Mapping[str, Decision]  # of Operator Managers that were asked in this round
    requests: tuple[Request, ...]
    verdict: Verdict  # of the Application Manager
    vetoes: tuple[Refused, ...]  # of the safety chain
    granted: tuple[Request, ...]  # what passed
    advise: bool = False  # nothing of it is carried out

    @property
    def done(self) -> tuple[Request, ...]:
        """What is carried out."""
        return () if self.advise else self.granted

    @property
    def to_do(self) -> Verdict:
        """For the actuator: what to carry out, and what was refused on the way."""
        return Verdict(self.done, (*self.verdict.refused, *self.vetoes))
