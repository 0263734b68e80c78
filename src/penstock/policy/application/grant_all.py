"""Grant everything that is not in conflict: the baseline global policy of Cardellini 2018, sec. 7."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.domain.observation import ApplicationObservation
from penstock.domain.request import Request, Verdict
from penstock.policy.application.requests import without_conflicts


@dataclass(frozen=True, slots=True)
class GrantAll:
    """Remembers nothing and refuses only conflicts."""

    def initial(self) -> None:
        return None

    def grant(
        self, memory: None, requests: Sequence[Request], seen: ApplicationObservation
    ) -> tuple[Verdict, None]:
        kept, refused = without_conflicts(requests)
        return Verdict(tuple(kept), tuple(refused)), None
