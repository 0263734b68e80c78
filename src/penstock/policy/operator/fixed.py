"""Static provisioning: the same deployment whatever happens.

By default the cheapest identical replicas that meet the objective at the peak; where none
does, those that come closest: the fastest response, then the most capacity.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.perf.deployments import cost_of, handle_of, speed_of
from penstock.perf.operator import response_time
from penstock.perf.queueing import QueueModel
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.policy.parameters import Param
from penstock.policy.registry import operator_policy


class FixedMemory(NamedTuple):
    """The deployment to run."""

    target: int


@operator_policy("fixed", has_bounds=True, unbound_by="replicas")
@dataclass(frozen=True, kw_only=True)
class Fixed(CompiledPolicy[FixedMemory]):
    """Static provisioning for the peak, or with a given number of replicas."""

    queue: QueueModel
    peak_rate: float
    max_response_time_s: float
    replicas: Annotated[int | None, Param("replicas to run; enough for the peak if left out", at_least=1)] = (
        None
    )

    def __post_init__(self) -> None:
        most = self.deployments.max_replicas
        if self.replicas is not None and not 1 <= self.replicas <= most:
            raise InputError(f"policy 'fixed': replicas={self.replicas}; 1 to {most} may run")

    def initial(self) -> FixedMemory:
        return FixedMemory(handle_of(self.deployments, self.chosen))

    def starting_type(self) -> int:
        return int(np.argmax(self.chosen.counts))

    @property
    def chosen(self) -> Replicas:
        types = len(self.node_types)
        counts = range(1, self.deployments.max_replicas + 1) if self.replicas is None else [self.replicas]
        identical = [
            Replicas(tuple(count if index == node_type else 0 for index in range(types)))
            for node_type in range(types)
            for count in counts
        ]
        return min(identical, key=self._merit)

    def _merit(self, replicas: Replicas) -> tuple[float, float]:
        handle = handle_of(self.deployments, replicas)
        time = response_time(self.queue, self.deployments, handle, self.peak_rate)
        if time <= self.max_response_time_s:
            return 0.0, cost_of(self.deployments, handle)
        return time, -speed_of(self.deployments, handle)


@step_of(FixedMemory)
def fixed_step(memory: FixedMemory, seen: Seen, rng: Generator) -> tuple[int, float]:
    return memory.target, 1.0
