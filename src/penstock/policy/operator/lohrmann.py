"""Lohrmann et al. (ICDCS 2015), for one operator: the fewest replicas Kingman's formula allows.

With p replicas the waiting time is a / (p - b), b = rate * S and a = b * S * (ca2+cs2)/2, so
the fewest replicas for a waiting budget w are ceil(a/w + b). The budget is what the limit
leaves after the service time. The published simulator counts waiting only, ignores
speedups, and reacts to measured overload by doubling (`as_published`).
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import compiled
from penstock.perf.deployments import replicas_of
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.operator.oldest_first import Fleet, acknowledge, no_fleet, resize
from penstock.policy.parameters import Param
from penstock.policy.registry import operator_policy

BOTTLENECK = 0.99
SATURATED_S = 999.0


class LohrmannMemory(NamedTuple):
    """Which replicas run, oldest first; the model is fixed."""

    fleet: Fleet
    node_type: int
    service_time_s: float  # on the chosen node type
    variability: float  # (ca2 + cs2) / 2
    max_response_time_s: float
    as_published: bool


@operator_policy(NodeChoice.variants("lohrmann"), needs_model=True, has_bounds=True, anticipates=True)
@dataclass(frozen=True, kw_only=True)
class Lohrmann(CompiledPolicy[LohrmannMemory]):
    """Queueing theory, Kingman: the fewest replicas that keep waiting within its budget."""

    node_choice: NodeChoice
    service_time_s: float  # mean on speedup 1
    service_scv: float
    max_response_time_s: float
    arrival_scv: Annotated[float, Param("variability of arrivals (SCV)", at_least=0)] = 1.0
    as_published: bool = False

    def starting_type(self) -> int:
        return self.node_choice.pick(speedup=self.deployments.speedup, price=self.deployments.price)

    def initial(self) -> LohrmannMemory:
        node_type = self.starting_type()
        speed = 1.0 if self.as_published else float(self.deployments.speedup[node_type])
        return LohrmannMemory(
            fleet=no_fleet(self.deployments),
            node_type=node_type,
            service_time_s=self.service_time_s / speed,
            variability=(self.arrival_scv + self.service_scv) / 2,
            max_response_time_s=self.max_response_time_s,
            as_published=self.as_published,
        )


@compiled
def kingman_wait(rate: float, service_time_s: float, variability: float, replicas: int) -> float:
    """Mean wait of p replicas that share the rate evenly: a / (p - b); infinite if they cannot keep up."""
    load = rate * service_time_s
    if load >= replicas:
        return np.inf
    return load * service_time_s * variability / (replicas - load)


@compiled
def replicas_for_wait(
    rate: float, service_time_s: float, variability: float, wait_s: float, most: int
) -> int:
    """The fewest replicas that keep the mean wait within the budget, or as many as are allowed."""
    load = rate * service_time_s
    if wait_s <= 0.0:
        return most
    wanted = np.ceil(load * service_time_s * variability / wait_s + load)
    if wanted <= load:
        wanted = load + 1.0  # no wait to speak of, but the queue must be stable
    return int(min(max(wanted, 1.0), most))


@compiled
def published_wait(me: LohrmannMemory, rate: float, replicas: int) -> float:
    wait = kingman_wait(rate, me.service_time_s, me.variability, replicas)
    return min(wait, SATURATED_S)


@compiled
def published_replicas(me: LohrmannMemory, seen: Seen) -> int:
    """The published simulator's procedure: double a measured bottleneck, else grow from one replica."""
    most = me.fleet.deployments.max_replicas
    limit = me.max_response_time_s
    if seen.rate * me.service_time_s > BOTTLENECK and seen.utilisation > BOTTLENECK:
        running = replicas_of(me.fleet.deployments, seen.deployment)
        return int(np.ceil(min(most, 2.0 * running * max(1.0, seen.utilisation))))
    if published_wait(me, seen.rate, most) >= limit:
        return most
    replicas = 1
    while replicas < most and published_wait(me, seen.rate, replicas) > limit:
        # The code multiplies by the current p, right only from p = 1; from above it overshoots.
        load = seen.rate * me.service_time_s * replicas
        replicas = int(min(np.ceil(load * me.service_time_s * me.variability / limit + load), most))
    return replicas


@step_of(LohrmannMemory)
def lohrmann_step(me: LohrmannMemory, seen: Seen, rng: Generator) -> tuple[int, float]:
    acknowledge(me.fleet, seen.deployment)
    if me.as_published:
        wanted = published_replicas(me, seen)
    else:
        wanted = replicas_for_wait(
            seen.rate,
            me.service_time_s,
            me.variability,
            me.max_response_time_s - me.service_time_s,
            me.fleet.deployments.max_replicas,
        )
    return resize(me.fleet, seen.deployment, wanted, me.node_type), 1.0
