"""What a policy is."""

from typing import Protocol, TypeVar

from numpy.random import Generator

from penstock.domain.decision import Decision
from penstock.domain.observation import OperatorObservation

M = TypeVar("M")


class OperatorPolicy(Protocol[M]):
    """Proposes a change for one operator from what that operator alone can see.

    Parameters live on the policy, everything it remembers lives in `M`. `decide` leaves
    the memory it was given as it was and returns the next one. Time is `seen.at_s` and
    chance is `rng`, so a recorded run replays to the same decisions.
    """

    def initial(self) -> M: ...

    def decide(self, memory: M, seen: OperatorObservation, rng: Generator) -> tuple[Decision, M]: ...
