"""DS2 (Kalavri et al., OSDI 2018), the rule behind Flink's autoscaler: today's industrial baseline.

The true rate of a replica is what it would process if it never waited: rate per replica
over utilisation, both averaged over the replicas. The operator gets as many replicas as it takes to
serve the arrival rate at the target utilisation, in one jump, but only when the mean
utilisation has left the tolerated band.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats
from penstock.domain.errors import InputError
from penstock.perf.deployments import replicas_of
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.operator.oldest_first import Fleet, acknowledge, no_fleet, resize
from penstock.policy.parameters import Param
from penstock.policy.registry import operator_policy


class Ds2Memory(NamedTuple):
    """The last true rate measured, for slots with nothing to measure."""

    fleet: Fleet
    node_type: int
    target: float
    low: float
    high: float
    worst_replica: bool
    true_rate: Floats  # [tuples/s of one replica; 0 before the first measurement]


@operator_policy("ds2")
@dataclass(frozen=True, kw_only=True)
class Ds2(CompiledPolicy[Ds2Memory]):
    """The rule behind Flink's autoscaler: replicas by the measured true processing rate."""

    node_choice: NodeChoice = NodeChoice.FIRST
    target: Annotated[float, Param("utilisation that replicas are sized for", above=0)] = 0.7
    low: Annotated[float, Param("utilisation below which it scales in", above=0)] = 0.4
    high: Annotated[float, Param("utilisation above which it scales out", above=0)] = 1.0
    worst_replica: Annotated[bool, Param("go by the busiest replica, not the mean")] = False

    def __post_init__(self) -> None:
        if not 0 < self.low < self.target <= self.high:
            raise InputError(
                f"ds2: low={self.low}, target={self.target}, high={self.high}; they must increase"
            )

    def starting_type(self) -> int:
        return self.node_choice.pick(speedup=self.deployments.speedup, price=self.deployments.price)

    def initial(self) -> Ds2Memory:
        return Ds2Memory(
            fleet=no_fleet(self.deployments),
            node_type=self.starting_type(),
            target=self.target,
            low=self.low,
            high=self.high,
            worst_replica=self.worst_replica,
            true_rate=np.zeros(1),
        )

    def explain(self, memory: Ds2Memory, seen: Seen) -> str:
        busy = (
            f"utilisation {seen.utilisation:.2f}"
            if self.worst_replica
            else f"mean utilisation {seen.mean_utilisation:.2f}"
        )
        return (
            f"{busy} (band {self.low:.2f} to {self.high:.2f}), "
            f"true rate {memory.true_rate[0]:.0f} t/s a replica, at {seen.rate:.0f} t/s"
        )


@step_of(Ds2Memory)
def ds2_step(me: Ds2Memory, seen: Seen, rng: Generator) -> tuple[int, float]:
    here = seen.deployment
    acknowledge(me.fleet, here)
    replicas = replicas_of(me.fleet.deployments, here)
    busy = seen.utilisation if me.worst_replica else seen.mean_utilisation
    if busy > 0.0 and seen.rate > 0.0:
        me.true_rate[0] = seen.rate / (replicas * busy)
    if me.true_rate[0] == 0.0 or me.low <= busy <= me.high:
        return here, 0.0
    most = float(me.fleet.deployments.max_replicas)
    wanted = int(min(np.ceil(seen.rate / (me.true_rate[0] * me.target)), most))
    return resize(me.fleet, here, wanted, me.node_type), min(abs(busy - me.target), 1.0)
