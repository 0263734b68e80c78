"""Threshold on utilisation (Cardellini 2018, sec. 5.1; Russo 2023, sec. 6.2.1).

Scale out when the utilisation of a replica exceeds U; scale in when the work of all n
replicas, spread over n - 1, stays below beta * U:  sum_r U_r / (n - 1) < beta * U.  Scores
are those of Cardellini 2018, sec. 5.1.

The published simulator goes by the busiest replica in both cases (`worst_replica`).
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from numpy.random import Generator

from penstock.compiled import compiled
from penstock.perf.deployments import NOWHERE, Deployments, adding, after, count_of, removing, replicas_of
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.parameters import Param, check_parameters
from penstock.policy.registry import operator_policy


class ThresholdMemory(NamedTuple):
    """Nothing is remembered from one decision to the next."""

    deployments: Deployments
    node_type: int
    high: float
    low: float
    worst_replica: bool


# The text of Russo 2023 says U = .7; its published tables were made with .75.
@operator_policy(NodeChoice.variants("threshold"), published={"threshold": 0.75, "worst_replica": True})
@dataclass(frozen=True, kw_only=True)
class Threshold(CompiledPolicy[ThresholdMemory]):
    """Thresholds on utilisation: one more replica when one is too busy, one fewer when the rest suffice."""

    node_choice: NodeChoice
    threshold: Annotated[float, Param("U, the utilisation at which it scales out", above=0, below=1)] = 0.7
    beta: Annotated[float, Param("fraction of U below which it scales in", above=0, below=1)] = 0.75
    worst_replica: Annotated[bool, Param("when scaling in, go by the busiest replica, not the mean")] = False

    def __post_init__(self) -> None:
        check_parameters(self)

    def starting_type(self) -> int:
        return self.node_choice.pick(speedup=self.deployments.speedup, price=self.deployments.price)

    def initial(self) -> ThresholdMemory:
        return ThresholdMemory(
            self.deployments,
            self.starting_type(),
            self.threshold,
            self.beta * self.threshold,
            self.worst_replica,
        )

    def explain(self, memory: ThresholdMemory, seen: Seen) -> str:
        bounds = f"bounds {memory.low:.2f} to {memory.high:.2f}"
        busiest, mean = f"{seen.utilisation:.2f}", f"{seen.mean_utilisation:.2f}"
        skewed = "" if memory.worst_replica or mean == busiest else f", mean {mean}"
        return f"utilisation {busiest}{skewed} ({bounds}) at {seen.rate:.0f} t/s"


@compiled
def one_fewer(space: Deployments, here: int, node_type: int) -> int:
    """One replica of this type fewer; where none runs, one of another type."""
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
        busy = seen.utilisation if memory.worst_replica else seen.mean_utilisation
        survivors = busy * replicas / (replicas - 1)
        if survivors < memory.low:
            return one_fewer(space, here, memory.node_type), (memory.low - survivors) / memory.low
    return here, 0.0
