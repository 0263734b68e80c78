"""What a policy is."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from numpy.random import Generator

from penstock.domain.decision import Decision
from penstock.domain.observation import ApplicationObservation, NodeObservation, OperatorObservation
from penstock.domain.request import Migrate, Request, Verdict

M = TypeVar("M")


class OperatorPolicy(Protocol[M]):
    """Proposes a change for one operator from what that operator alone can see.

    Parameters live on the policy, everything it remembers lives in `M`. `decide` leaves
    the memory it was given as it was and returns the next one. Time is `seen.at_s` and
    chance is `rng`, so a recorded run replays to the same decisions.
    """

    def initial(self) -> M: ...

    def decide(self, memory: M, seen: OperatorObservation, rng: Generator) -> tuple[Decision, M]: ...


class ApplicationPolicy(Protocol[M]):
    """Grants or refuses what Operator and Node Managers ask for, with a view of the whole application.

    Every request gets an answer; a refusal says why. One that decides for the operators itself
    refuses what they ask for and grants requests of its own. Pure, like `OperatorPolicy`.
    """

    def initial(self) -> M: ...

    def grant(
        self, memory: M, requests: Sequence[Request], seen: ApplicationObservation
    ) -> tuple[Verdict, M]: ...


@runtime_checkable
class DecidesInPlace(Protocol):
    """An operator or application policy that need not copy the memory of a loop that never goes back."""

    def in_place(self, memory: Any, *, explains: bool) -> Any:
        """The memory in a form that it writes into; decisions are the same, with reasons if it `explains`."""
        ...


class NodePolicy(Protocol):
    """Asks for replicas to leave a node, from what that node alone can see."""

    def propose(
        self, seen: NodeObservation, nodes: Mapping[str, NodeObservation], rng: Generator
    ) -> Migrate | None: ...
