"""DRS (Fu et al., ToN 2017) for a whole application: a Jackson network of M/M/c stations.

Operator i receives lambda_i tuples/s by the traffic equations; a tuple's expected total
sojourn time is  E[T](k) = sum_i lambda_i E[T_i](k_i) / lambda_0,  with lambda_0 tuples/s of
all sources together.  From the fewest processors that keep every station stable, the next one
goes where it lowers E[T] most, until E[T] meets the limit. E[T_i] is convex in k_i, so no
other allocation does it with fewer.

The published simulator stops at stability and ignores speedups (`as_published`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from math import inf

from penstock.direct_calls import machine_code
from penstock.policy.application.sizing import SizingManager, Station
from penstock.policy.operator.drs import servers_needed, sojourn_time
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.registry import application_policy


@application_policy(NodeChoice.variants("drs"), needs_model=True, decides_itself=True, anticipates=True)
@dataclass(frozen=True, kw_only=True)
class DrsManager(SizingManager):
    """Sizes all operators by queueing theory, M/M/c: the expected sojourn time of a tuple."""

    def sizes(self, stations: Mapping[str, Station], source_rate: float) -> dict[str, int]:
        needed, _ = _direct()
        least = {name: needed(s.rate, s.service_time_s, inf, s.most) for name, s in stations.items()}
        if self.as_published:
            return least
        return allocated(stations, least, len(self.application.sources) * source_rate, self._limit_s)

    @cached_property
    def _limit_s(self) -> float:
        return min(self.queueing_objective.for_path(path) for path in self.application.paths)


@cache
def _direct() -> tuple[Callable[[float, float, float, int], int], Callable[[float, float, int], float]]:
    """`servers_needed` and `sojourn_time`, called a dozen times per decision, without the front door."""
    return machine_code(servers_needed, 0.0, 0.0, 0.0, 0), machine_code(sojourn_time, 0.0, 0.0, 0)


def allocated(
    stations: Mapping[str, Station], least: Mapping[str, int], lambda_0: float, limit_s: float
) -> dict[str, int]:
    """Processors per station: from the least, one by one where each gains most, until the limit is met."""
    servers = dict(least)
    _, sojourn_s = _direct()

    def burden(name: str, count: int) -> float:
        """lambda_i E[T_i]: what a station adds to E[T], times lambda_0."""
        station = stations[name]
        return station.rate * sojourn_s(station.rate, station.service_time_s, count) if station.rate else 0.0

    burdens = {name: burden(name, count) for name, count in servers.items()}
    while sum(burdens.values()) > limit_s * lambda_0:
        gains = {
            name: burdens[name] - burden(name, servers[name] + 1)
            for name, station in stations.items()
            if servers[name] < station.most
        }
        if not gains:
            break  # as many as are allowed
        best = max(gains, key=gains.__getitem__)
        servers[best] += 1
        burdens[best] -= gains[best]
    return servers
