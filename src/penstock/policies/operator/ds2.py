"""DS2 (Kalavri et al., OSDI 2018), the rule behind Flink's autoscaler: today's industrial baseline.

The true rate of a replica is what it would process if it never waited: rate per replica
over utilisation, both on average over the replicas. The operator gets as many replicas as
serve the arrival rate at the target utilisation, in one jump, but only when the mean
utilisation has left the tolerated band.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats
from penstock.domain.errors import InputError
from penstock.perf.deployments import replicas_of
from penstock.policies.kernel import CompiledPolicy, Seen, step_of
from penstock.policies.operator.node_choice import NodeChoice
from penstock.policies.operator.oldest_first import Fleet, acknowledge, no_fleet, resize


class Ds2Memory(NamedTuple):
    """The last true rate measured, for slots with nothing to measure."""

    fleet: Fleet
    node_type: int
    target: float
    low: float
    high: float
    true_rate: Floats  # [tuples/s of one replica; 0 before the first measurement]


@dataclass(frozen=True, kw_only=True)
class Ds2(CompiledPolicy[Ds2Memory]):
    """Sizes the operator by its measured true processing rate, with Flink's default band."""

    node_choice: NodeChoice = NodeChoice.FIRST
    target: float = 0.7
    low: float = 0.4
    high: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.low < self.target <= self.high:
            raise InputError(
                f"ds2: low={self.low}, target={self.target}, high={self.high}; they must increase"
            )

    def starting_type(self) -> int:
        return self.node_choice.pick(speedup=self.deployments.speedup, price=self.deployments.price)

    def initial(self) -> Ds2Memory:
        return Ds2Memory(
            no_fleet(self.deployments), self.starting_type(), self.target, self.low, self.high, np.zeros(1)
        )

    def explain(self, memory: Ds2Memory, seen: Seen) -> str:
        return (
            f"mean utilisation {seen.mean_utilisation:.2f} (band {self.low:.2f} to {self.high:.2f}), "
            f"true rate {memory.true_rate[0]:.0f} t/s a replica, at {seen.rate:.0f} t/s"
        )


@step_of(Ds2Memory)
def ds2_step(me: Ds2Memory, seen: Seen, rng: Generator) -> tuple[int, float]:
    here = seen.deployment
    acknowledge(me.fleet, here)
    replicas = replicas_of(me.fleet.deployments, here)
    busy = seen.mean_utilisation
    if busy > 0.0 and seen.rate > 0.0:
        me.true_rate[0] = seen.rate / (replicas * busy)
    if me.true_rate[0] == 0.0 or me.low <= busy <= me.high:
        return here, 0.0
    most = float(me.fleet.deployments.max_replicas)
    wanted = int(min(np.ceil(seen.rate / (me.true_rate[0] * me.target)), most))
    return resize(me.fleet, here, wanted, me.node_type), min(abs(busy - me.target), 1.0)
