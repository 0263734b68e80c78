"""A policy of your own in plain Python: scale on response time. See docs/add-a-policy.md."""

from dataclasses import dataclass
from typing import Annotated

from numpy.random import Generator

from penstock import Decision, Hold, OperatorObservation, Param, Scale, operator_policy


@operator_policy("patient", has_bounds=True)
@dataclass(frozen=True, kw_only=True)
class Patient:
    """Adds a replica near the limit; removes one when fewer have been enough for a while."""

    max_response_time_s: float  # filled in: the response time its operator is to stay within
    max_replicas: int  # filled in
    near: Annotated[float, Param("share of the limit that counts as near", above=0, below=1)] = 0.8
    patience: Annotated[int, Param("calm intervals before a replica goes", at_least=1)] = 10

    def initial(self) -> int:
        return 0  # calm intervals in a row

    def decide(self, memory: int, seen: OperatorObservation, rng: Generator) -> tuple[Decision, int]:
        if seen.arrival_rate is None or seen.response_time_s is None or seen.utilisation is None:
            return Hold("rate, response time or utilisation not measured"), memory
        total, own = seen.replicas.total, seen.replicas.counts[0]
        nearness = seen.response_time_s / self.max_response_time_s
        why = f"{nearness:.2f} of the response time allowed at {seen.arrival_rate:.0f} t/s"
        if nearness > self.near and total < self.max_replicas:
            more = seen.replicas.changed(0, +1)
            return Scale(target=more, score=min(nearness - self.near, 1.0), reason=f"+1: {why}"), 0
        # The load the others would carry, not the current one: 2 replicas at 0.69 are 1 at 1.38.
        survivors = seen.utilisation * total / (total - 1) if total > 1 and own > 0 else 1.0
        calm = memory + 1 if survivors < self.near else 0
        if calm < self.patience:
            return Hold(f"{total} replicas: {why}"), calm
        fewer = seen.replicas.changed(0, -1)
        return Scale(target=fewer, score=max(self.near - survivors, 0.0), reason=f"-1: {why}"), 0

    def starting_type(self) -> int:
        return 0  # node type of the first replica; the cheapest if a policy does not say
