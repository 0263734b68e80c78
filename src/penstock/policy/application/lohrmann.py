"""Lohrmann et al. (ICDCS 2015) for a whole application: Kingman's formula against every path's limit.

With p_i replicas operator i makes a tuple wait  W_i(p_i) = a_i / (p_i - b_i),  b = rate * S and
a = b * S * (ca2 + cs2) / 2.  What a path's limit leaves after its service times is its waiting
budget. Path by path, from what the paths before it need: the next replica goes to the operator
whose wait it shortens most, until the waits fit the budget. W_i is convex in p_i, so a single
path gets the fewest replicas that do.

The original jumps over many single steps at once; the published simulator does too, counts
waiting only, ignores speedups and doubles measured bottlenecks (`as_published`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Annotated

from penstock.domain.application import Path
from penstock.policy.application.sizing import SizingManager, Station
from penstock.policy.operator.lohrmann import BOTTLENECK, SATURATED_S, kingman_wait, replicas_for_wait
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.parameters import Param
from penstock.policy.registry import application_policy


@application_policy(NodeChoice.variants("lohrmann"), needs_model=True, decides_itself=True, anticipates=True)
@dataclass(frozen=True, kw_only=True)
class LohrmannManager(SizingManager):
    """Sizes all operators by queueing theory, Kingman: waiting along every path within its budget."""

    arrival_scv: Annotated[float, Param("variability of arrivals (SCV)", at_least=0)] = 1.0

    def sizes(self, stations: Mapping[str, Station], source_rate: float) -> dict[str, int]:
        sizes = dict.fromkeys(stations, 1)
        for path in self.application.paths:
            limit_s = self.queueing_objective.for_path(path)
            if self.as_published:
                sizes |= self._published(path, stations, sizes, limit_s)
            else:
                budget_s = limit_s - sum(stations[name].service_time_s for name in path)
                sizes |= self._balanced(path, stations, sizes, budget_s)
        return sizes

    def wait(self, station: Station, replicas: int) -> float:
        return kingman_wait(station.rate, station.service_time_s, self._variability(station), replicas)

    def _variability(self, station: Station) -> float:
        return (self.arrival_scv + station.service_scv) / 2

    def _balanced(
        self, path: Path, stations: Mapping[str, Station], least: Mapping[str, int], budget_s: float
    ) -> dict[str, int]:
        """The fewest replicas along a path, none below `least`, that keep waiting within the budget."""
        sizes = {name: max(least[name], self._stable(stations[name])) for name in path}
        waits = {name: self.wait(stations[name], count) for name, count in sizes.items()}
        while not sum(waits.values()) <= budget_s:
            shorter = {
                name: self.wait(stations[name], sizes[name] + 1)
                for name in path
                if sizes[name] < stations[name].most
            }
            if not shorter:
                break  # as many as are allowed
            best = max(shorter, key=lambda name: waits[name] - shorter[name])
            sizes[best] += 1
            waits[best] = shorter[best]
        return sizes

    def _stable(self, station: Station) -> int:
        """Replicas that can keep up, however long tuples wait."""
        return replicas_for_wait(station.rate, station.service_time_s, 0.0, 1.0, station.most)

    def _published(
        self, path: Path, stations: Mapping[str, Station], so_far: Mapping[str, int], limit_s: float
    ) -> dict[str, int]:
        """The published procedure: double measured bottlenecks, else grow from one replica in jumps."""
        stuck = {
            name: stations[name]
            for name in path
            if stations[name].rate * stations[name].service_time_s > BOTTLENECK
            and stations[name].utilisation > BOTTLENECK
        }
        if stuck:
            # The notes on the code do not say what the others get: they keep what they run.
            doubled = {n: min(s.most, 2.0 * s.running * max(1.0, s.utilisation)) for n, s in stuck.items()}
            return {name: ceil(doubled.get(name, stations[name].running)) for name in path}
        most = {name: stations[name].most for name in path}
        if self._published_latency(stations, most) >= limit_s:
            return most
        sizes = {name: so_far[name] for name in path}
        while (latency := self._published_latency(stations, sizes)) > limit_s:
            gains = {
                name: self._published_wait(stations[name], sizes[name])
                - self._published_wait(stations[name], sizes[name] + 1)
                for name in path
                if sizes[name] < most[name]
            }
            best, *others = sorted(gains, key=lambda name: -gains[name])
            station = stations[best]
            # The code multiplies by the current p, right only from p = 1; from above it overshoots.
            b = station.rate * station.service_time_s * sizes[best]
            a = b * station.service_time_s * self._variability(station)
            if others and gains[others[0]] > 0:
                # Where one more replica gains as little as it would at the second best.
                wanted = b + (sqrt(1 + 4 * a / gains[others[0]]) - 1) / 2
            else:
                left_s = limit_s - latency + self._published_wait(station, sizes[best])
                wanted = a / left_s + b if left_s > 0 else float(station.most)
            sizes[best] = max(sizes[best] + 1, min(ceil(wanted), station.most))
        return sizes

    def _published_wait(self, station: Station, replicas: int) -> float:
        return min(self.wait(station, replicas), SATURATED_S)

    def _published_latency(self, stations: Mapping[str, Station], sizes: Mapping[str, int]) -> float:
        return sum(self._published_wait(stations[name], count) for name, count in sizes.items())
