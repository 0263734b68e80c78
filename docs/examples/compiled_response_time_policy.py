"""The same policy compiled, for millions of slots and for the command line. See docs/add-a-policy.md."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.cli import main
from penstock.compiled import Ints
from penstock.perf.deployments import (
    NOWHERE,
    Deployments,
    adding,
    after,
    count_of,
    removing,
    replicas_of,
)
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.simulation.catalogue import POLICIES, Operator


class ResponseTimeMemory(NamedTuple):
    """Parameters, and the calm intervals so far in an array, because a step changes it in place."""

    deployments: Deployments
    limit_s: float
    node_type: int
    patience: int
    calm: Ints  # [calm intervals in a row]


@dataclass(frozen=True, kw_only=True)
class CompiledResponseTime(CompiledPolicy[ResponseTimeMemory]):
    """Adds a replica near the limit; removes one when fewer have been enough for a while."""

    limit_s: float
    node_type: int = 0
    patience: int = 10

    def initial(self) -> ResponseTimeMemory:
        calm = np.zeros(1, dtype=np.int64)
        return ResponseTimeMemory(self.deployments, self.limit_s, self.node_type, self.patience, calm)

    def starting_type(self) -> int:
        return self.node_type


@step_of(ResponseTimeMemory)
def response_time_step(me: ResponseTimeMemory, seen: Seen, rng: Generator) -> tuple[int, float]:
    space, here = me.deployments, seen.deployment
    nearness = seen.response_time_s / me.limit_s
    more = after(space, here, adding(space, me.node_type))
    if nearness > 0.8 and more != NOWHERE:
        me.calm[0] = 0
        return more, min(nearness - 0.8, 1.0)
    total = replicas_of(space, here)
    survivors = 1.0
    if total > 1 and count_of(space, here, me.node_type) > 0:
        survivors = seen.utilisation * total / (total - 1)
    me.calm[0] = me.calm[0] + 1 if survivors < 0.8 else 0
    if me.calm[0] < me.patience:
        return here, 0.0
    me.calm[0] = 0
    return after(space, here, removing(space, me.node_type)), max(0.8 - survivors, 0.0)


def build(op: Operator) -> CompiledPolicy[Any]:
    return CompiledResponseTime(node_types=op.node_types, deployments=op.deployments, limit_s=op.spec.slo_s)


if __name__ == "__main__":
    POLICIES["response-time"] = build
    main()
