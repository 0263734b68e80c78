"""Delays between simulated nodes as their monitors know them: estimated from a few round trips.

Every interval each node times one round trip to another node and moves its Vivaldi coordinate
(`perf/vivaldi.py`). What managers see is the distance of coordinates, not the links.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import exp

from numpy.random import Generator

from penstock.domain.infrastructure import Infrastructure
from penstock.perf.vivaldi import Coordinate, distance, observed, unknown_place

_SHORTEST_S = 1e-6  # a round trip takes some time even where the link has no delay
_BEFORE_THE_START = 100  # rounds: nodes are there before the application is


def true_delays(infrastructure: Infrastructure) -> dict[str, dict[str, float]]:
    """Seconds from every node to those it is linked with, itself left out."""
    delays: dict[str, dict[str, float]] = {node.name: {} for node in infrastructure.nodes}
    for link in infrastructure.links:
        delays[link.a][link.b] = delays[link.b][link.a] = link.delay_s
    return delays


@dataclass(slots=True)
class RoundTrips:
    """Coordinates of all nodes, kept up to date by `measure`."""

    delays_s: Mapping[str, Mapping[str, float]]
    rng: Generator
    jitter: float = 0.1  # of a measured round trip, standard deviation of its logarithm
    _places: dict[str, Coordinate] = field(default_factory=dict)
    _others: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._others = {name: sorted(delays) for name, delays in self.delays_s.items()}
        self._places = {name: unknown_place() for name in self.delays_s}
        for _ in range(_BEFORE_THE_START):
            self.measure()

    def measure(self) -> None:
        """One round trip from every node to another one, chosen at random."""
        self._places = places = dict(self._places)  # estimates given away before stay as they were
        for name, delays in self.delays_s.items():
            if not delays:
                continue
            other = self._others[name][int(self.rng.random() * len(delays))]
            trip_s = 2 * delays[other] * exp(self.jitter * self.rng.standard_normal())
            places[name] = observed(places[name], places[other], max(trip_s, _SHORTEST_S), self.rng)

    def from_node(self, name: str) -> "Estimates":
        """Estimated seconds, one way, to every other node."""
        return Estimates(name, self.delays_s[name], self._places)


class Estimates(Mapping[str, float]):
    """Delays from one node, worked out when somebody asks: most are never asked for."""

    __slots__ = ("_linked", "_origin", "_places")

    def __init__(self, origin: str, linked: Mapping[str, float], places: Mapping[str, Coordinate]) -> None:
        self._origin, self._linked, self._places = origin, linked, places

    def __getitem__(self, other: str) -> float:
        if other not in self._linked:
            raise KeyError(other)
        return distance(self._places[self._origin], self._places[other]) / 2

    def __contains__(self, other: object) -> bool:
        return other in self._linked

    def __iter__(self) -> Iterator[str]:
        return iter(self._linked)

    def __len__(self) -> int:
        return len(self._linked)
