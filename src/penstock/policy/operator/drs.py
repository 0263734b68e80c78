"""DRS (Fu et al., ToN 2017), for one operator: the fewest replicas an M/M/c queue needs.

In DRS an operator is an M/M/c station of a Jackson network and gets the fewest processors
for which the expected sojourn time meets the limit. The published simulator's version
stops at the stability minimum and ignores speedups (`as_published`).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import compiled
from penstock.policy.kernel import CompiledPolicy, Seen, step_of
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.operator.oldest_first import Fleet, acknowledge, no_fleet, resize
from penstock.policy.registry import operator_policy


class DrsMemory(NamedTuple):
    """Which replicas run, oldest first; the model is fixed."""

    fleet: Fleet
    node_type: int
    service_time_s: float  # on the chosen node type
    max_response_time_s: float
    as_published: bool


@operator_policy(NodeChoice.variants("drs"), needs_model=True, has_bounds=True, anticipates=True)
@dataclass(frozen=True, kw_only=True)
class Drs(CompiledPolicy[DrsMemory]):
    """Queueing theory, M/M/c: the fewest replicas that meet the limit."""

    node_choice: NodeChoice
    service_time_s: float  # mean on speedup 1
    max_response_time_s: float
    as_published: bool = False

    def starting_type(self) -> int:
        return self.node_choice.pick(speedup=self.deployments.speedup, price=self.deployments.price)

    def initial(self) -> DrsMemory:
        node_type = self.starting_type()
        speed = 1.0 if self.as_published else float(self.deployments.speedup[node_type])
        return DrsMemory(
            fleet=no_fleet(self.deployments),
            node_type=node_type,
            service_time_s=self.service_time_s / speed,
            max_response_time_s=self.max_response_time_s,
            as_published=self.as_published,
        )


@compiled
def sojourn_time(rate: float, service_time_s: float, servers: int) -> float:
    """Mean time in an M/M/c queue: Erlang C, by the stable recursion for Erlang B."""
    offered = rate * service_time_s
    if offered >= servers:
        return np.inf
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    waits = blocked / (1.0 - offered / servers * (1.0 - blocked))
    return service_time_s + waits * service_time_s / (servers - offered)


@compiled
def stable_servers(rate: float, service_time_s: float, most: int) -> int:
    """The fewest servers with which the queue does not grow for ever, or as many as are allowed."""
    # Compared as floats: an offered load beyond the integers would wrap round to a negative number.
    return int(min(np.floor(rate * service_time_s) + 1.0, float(most)))


@compiled
def servers_needed(rate: float, service_time_s: float, limit_s: float, most: int) -> int:
    """The fewest servers that meet the limit, or as many as are allowed."""
    servers = stable_servers(rate, service_time_s, most)
    while servers < most and sojourn_time(rate, service_time_s, servers) > limit_s:
        servers += 1
    return servers


@step_of(DrsMemory)
def drs_step(me: DrsMemory, seen: Seen, rng: Generator) -> tuple[int, float]:
    acknowledge(me.fleet, seen.deployment)
    most = me.fleet.deployments.max_replicas
    if me.as_published:
        wanted = stable_servers(seen.rate, me.service_time_s, most)
    else:
        wanted = servers_needed(seen.rate, me.service_time_s, me.max_response_time_s, most)
    return resize(me.fleet, seen.deployment, wanted, me.node_type), 1.0
