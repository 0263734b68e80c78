"""Threshold on utilisation (Cardellini 2018, sec. 5.1; Russo 2023, sec. 6.2.1).

Scale out when utilisation exceeds U; scale in when, with one replica fewer, it would stay
below beta * U. Scores are those of Cardellini 2018, sec. 5.1.
"""

from dataclasses import dataclass
from typing import NamedTuple

from numpy.random import Generator

from penstock.compiled import compiled
from penstock.domain.errors import InputError
from penstock.perf.deployments import NOWHERE, Deployments, adding, after, count_of, removing, replicas_of
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.policy.operator.node_choice import NodeChoice


class ThresholdMemory(NamedTuple):
    """Nothing is remembered from one decision to the next."""

    deployments: Deployments
    node_type: int
    high: float
    low: float


@dataclass(frozen=True, kw_only=True)
class Threshold(CompiledPolicy[ThresholdMemory]):
    """Keeps utilisation between beta * U and U."""

    node_choice: NodeChoice
    threshold: float = 0.7  # U
    beta: float = 0.75

    def __post_init__(self) -> None:
        if not 0 < self.threshold < 1:
            raise InputError(f"threshold={self.threshold}; a utilisation between 0 and 1")
        if not 0 < self.beta < 1:
            raise InputError(f"beta={self.beta}; a fraction between 0 and 1")

    def starting_type(self) -> int:
        return self.node_choice.pick(speedup=self.deployments.speedup, price=self.deployments.price)

    def initial(self) -> ThresholdMemory:
        return ThresholdMemory(
            self.deployments, self.starting_type(), self.threshold, self.beta * self.threshold
        )

    def explain(self, memory: ThresholdMemory, seen: Seen) -> str:
        bounds = f"bounds {memory.low:.2f} to {memory.high:.2f}"
        return f"utilisation {seen.utilisation:.2f} ({bounds}) at {seen.rate:.0f} t/s"


@compiled
def one_fewer(space: Deployments, here: int, node_type: int) -> int:
    """One replica of this type fewer; of another type where this one does not run."""
    if count_of(space, here, node_type) == 0:
        for other in range(space.speedup.size):
            if count_of(space, here, other) > 0:
                node_type = other
    return after(space, here, removing(space, node_type))


@step_of(ThresholdMemory)
def threshold_step(memory: ThresholdMemory, seen: Seen, rng: Generator) -> tuple[int, float]:
    space = memory.deployments
    here = seen.deployment
    if seen.utilisation > memory.high:
        out = after(space, here, adding(space, memory.node_type))
        if out != NOWHERE:
            return out, min((seen.utilisation - memory.high) / (1.0 - memory.high), 1.0)
        return here, 0.0
    replicas = replicas_of(space, here)
    if replicas > 1:
        # Judge the load the survivors would carry, or the policy undoes itself:
        # 2 replicas at 0.38 are 1 replica at 0.76, scaled out again.
        survivors = seen.utilisation * replicas / (replicas - 1)
        if survivors < memory.low:
            return one_fewer(space, here, memory.node_type), (memory.low - survivors) / memory.low
    return here, 0.0
