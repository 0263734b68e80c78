"""The token bucket of Cardellini 2018, sec. 7: reconfigure when it pays, hold still when all is well.

Every period, a response time above `high_s` earns an H token, which grants a scale-out or a
migration; one below `low_s` earns an L token, which grants a scale-in; in between nothing is
earned. The bucket holds one kind at a time and at most `capacity` tokens: a token of the
other kind empties it, and a new one pushes out the oldest when it is full. Where paths have
limits of their own, the path that is worst off counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from math import floor
from typing import Annotated

from penstock.domain.errors import InputError
from penstock.domain.observation import ApplicationObservation
from penstock.domain.request import Refused, Request, ScaleIn, Verdict
from penstock.policy.application.requests import without_conflicts
from penstock.policy.knowledge import ApplicationKnowledge
from penstock.policy.parameters import Param, check_parameters
from penstock.policy.registry import application_policy


class Token(Enum):
    """What a token grants."""

    HIGH = "H"  # a scale-out or a migration
    LOW = "L"  # a scale-in


@dataclass(frozen=True, slots=True)
class Bucket:
    """Tokens of one kind, and when one could last be earned."""

    kind: Token | None = None
    tokens: int = 0
    looked_at_s: float | None = None


@application_policy("token-bucket")
@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBucket:
    """Grants what operators ask for, but few changes while all is well."""

    low_s: Annotated[
        float,
        Param("response time below which a scale-in is granted; by default half the objective", at_least=0),
    ]
    high_s: Annotated[
        float,
        Param("response time above which a scale-out is granted; by default .9 of the objective", at_least=0),
    ]
    period_s: Annotated[float, Param("seconds between tokens; by default two intervals", above=0)]
    capacity: Annotated[int, Param("most tokens it can hold", at_least=1)] = 1

    @classmethod
    def usual(cls, known: ApplicationKnowledge) -> dict[str, float]:
        """As in Cardellini 2018: half and nine tenths of the objective, a token every second interval."""
        return {
            "low_s": known.limit_s / 2,
            "high_s": 0.9 * known.limit_s,
            "period_s": 2 * known.interval_s,
        }

    def __post_init__(self) -> None:
        check_parameters(self)
        if not self.low_s < self.high_s:
            raise InputError(
                f"token bucket: thresholds {self.low_s} s and {self.high_s} s; low must be below high"
            )

    def initial(self) -> Bucket:
        return Bucket()

    def grant(
        self, memory: Bucket, requests: Sequence[Request], seen: ApplicationObservation
    ) -> tuple[Verdict, Bucket]:
        bucket = self._earn(memory, seen)
        kept, refused = without_conflicts(requests)
        granted: list[Request] = []
        for request in kept:
            needed = Token.LOW if isinstance(request, ScaleIn) else Token.HIGH
            if bucket.kind is needed and bucket.tokens > 0:
                granted.append(request)
                bucket = Bucket(bucket.kind, bucket.tokens - 1, bucket.looked_at_s)
            else:
                refused.append(Refused(request, self._why_not(needed, seen)))
        return Verdict(tuple(granted), tuple(refused)), bucket

    def _earn(self, bucket: Bucket, seen: ApplicationObservation) -> Bucket:
        time_s = judged_s(seen)
        last = bucket.looked_at_s
        periods = 1 if last is None else floor((seen.at_s - last) / self.period_s)
        # Blind: earn nothing, and look again as soon as something is measured.
        if periods < 1 or time_s is None:
            return bucket
        # By whole periods: live rounds are never exactly on time, and an early one must not cost a token.
        looked_at_s = seen.at_s if last is None else last + periods * self.period_s
        if time_s > self.high_s:
            earned = Token.HIGH
        elif time_s < self.low_s:
            earned = Token.LOW
        else:
            return Bucket(bucket.kind, bucket.tokens, looked_at_s)
        before = bucket.tokens if bucket.kind is earned else 0
        return Bucket(earned, min(before + 1, self.capacity), looked_at_s)

    def _why_not(self, needed: Token, seen: ApplicationObservation) -> str:
        time_s = judged_s(seen)
        if time_s is None:
            return f"no {needed.value} token: response time not measured"
        band = f"{self.low_s * 1000:.0f}-{self.high_s * 1000:.0f} ms"
        return f"no {needed.value} token: response time {time_s * 1000:.0f} ms, band {band}"


def judged_s(seen: ApplicationObservation) -> float | None:
    """The response time that tokens are earned by."""
    return seen.response_time_s if seen.strictest_s is None else seen.strictest_s
