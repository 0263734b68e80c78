"""The same policy compiled, for millions of slots. See docs/add-a-policy.md."""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock import (
    NOWHERE,
    CompiledPolicy,
    Deployments,
    Ints,
    Param,
    Seen,
    adding,
    after,
    count_of,
    operator_policy,
    removing,
    replicas_of,
    step_of,
)


class PatientMemory(NamedTuple):
    """Parameters, and the calm intervals so far in an array, because a step changes it in place."""

    deployments: Deployments
    limit_s: float
    near: float
    patience: int
    calm: Ints  # [calm intervals in a row]


@operator_policy("patient-compiled", has_bounds=True)
@dataclass(frozen=True, kw_only=True)
class Patient(CompiledPolicy[PatientMemory]):
    """Adds a replica near the limit; removes one when fewer have been enough for a while."""

    max_response_time_s: float
    near: Annotated[float, Param("share of the limit that counts as near", above=0, below=1)] = 0.8
    patience: Annotated[int, Param("calm intervals before a replica goes", at_least=1)] = 10

    def initial(self) -> PatientMemory:
        calm = np.zeros(1, dtype=np.int64)
        return PatientMemory(self.deployments, self.max_response_time_s, self.near, self.patience, calm)

    def starting_type(self) -> int:
        return 0


@step_of(PatientMemory)
def patient_step(me: PatientMemory, seen: Seen, rng: Generator) -> tuple[int, float]:
    """Memory and what was seen in, the deployment to run next and the score out."""
    space, here = me.deployments, seen.deployment
    nearness = seen.response_time_s / me.limit_s
    more = after(space, here, adding(space, 0))
    if nearness > me.near and more != NOWHERE:
        me.calm[0] = 0
        return more, min(nearness - me.near, 1.0)
    total = replicas_of(space, here)
    survivors = 1.0
    if total > 1 and count_of(space, here, 0) > 0:
        survivors = seen.utilisation * total / (total - 1)
    me.calm[0] = me.calm[0] + 1 if survivors < me.near else 0
    if me.calm[0] < me.patience:
        return here, 0.0
    me.calm[0] = 0
    return after(space, here, removing(space, 0)), max(me.near - survivors, 0.0)
