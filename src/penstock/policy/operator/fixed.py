"""Static provisioning: the same deployment whatever happens."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.domain.deployment import Replicas
from penstock.perf.deployments import handle_of
from penstock.policy.kernel import CompiledPolicy, Seen, step_of


class FixedMemory(NamedTuple):
    """Where to be."""

    target: int


@dataclass(frozen=True, kw_only=True)
class Fixed(CompiledPolicy[FixedMemory]):
    """Runs `replicas` from the first decision on."""

    replicas: Replicas

    def initial(self) -> FixedMemory:
        return FixedMemory(handle_of(self.deployments, self.replicas))

    def starting_type(self) -> int:
        return int(np.argmax(self.replicas.counts))


@step_of(FixedMemory)
def fixed_step(memory: FixedMemory, seen: Seen, rng: Generator) -> tuple[int, float]:
    return memory.target, 1.0
