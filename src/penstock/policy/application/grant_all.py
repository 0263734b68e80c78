"""Grant everything that is not in conflict: the baseline global policy of Cardellini 2018, sec. 7."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.domain.observation import ApplicationObservation
from penstock.domain.request import Request, Verdict
from penstock.policy.application.requests import without_conflicts
from penstock.policy.registry import application_policy


@application_policy("grant-all")
@dataclass(frozen=True, slots=True)
class GrantAll:
    """Grants what operators ask for; refuses only conflicts."""

    def initial(self) -> None:
        return None

    def grant(
        self, memory: None, requests: Sequence[Request], seen: ApplicationObservation
    ) -> tuple[Verdict, None]:
        kept, refused = without_conflicts(requests)
        return Verdict(tuple(kept), tuple(refused)), None
