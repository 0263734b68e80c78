"""Delays between simulated nodes as their monitors know them: estimated from a few round trips.

Every interval each node times one round trip to another node and moves its Vivaldi coordinate
(`perf/vivaldi.py`). What managers see is the distance of coordinates, not the links.
"""

from collections.abc import Iterator, Mapping
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled, frozen_floats, frozen_ints
from penstock.direct_calls import OpenGenerator, generator_at, machine_code
from penstock.domain.infrastructure import Infrastructure
from penstock.perf.vivaldi import Coordinate, distance, moved, unknown_place

_SHORTEST_S = 1e-6  # a round trip takes some time even where the link has no delay
_BEFORE_THE_START = 100  # rounds: nodes are there before the application is


def true_delays(infrastructure: Infrastructure) -> dict[str, dict[str, float]]:
    """Seconds from every node to those it is linked with, itself left out."""
    delays: dict[str, dict[str, float]] = {node.name: {} for node in infrastructure.nodes}
    for link in infrastructure.links:
        delays[link.a][link.b] = delays[link.b][link.a] = link.delay_s
    return delays


class _Links(NamedTuple):
    """Of every node those it is linked with, by name, and the delays: rows as long as the longest."""

    degree: Ints
    others: Ints
    delays_s: Floats


def _links(delays_s: Mapping[str, Mapping[str, float]]) -> _Links:
    names = list(delays_s)
    longest = max((len(row) for row in delays_s.values()), default=0)
    others = np.zeros((len(names), longest), dtype=np.int64)
    delays = np.zeros((len(names), longest))
    for index, row in enumerate(delays_s.values()):
        for place, other in enumerate(sorted(row)):
            others[index, place], delays[index, place] = names.index(other), row[other]
    degree = [len(row) for row in delays_s.values()]
    return _Links(frozen_ints(degree), frozen_ints(others), frozen_floats(delays))


@compiled
def _place(places: Floats, node: int) -> Coordinate:
    return Coordinate((places[node, 0], places[node, 1], places[node, 2]), places[node, 3])


@compiled
def _measure(links: _Links, jitter: float, places: Floats, estimates: Floats, generator: int) -> None:
    """A round trip of every node; then half the distance between any two."""
    rng = generator_at(generator)
    for node in range(links.degree.size):
        if links.degree[node] > 0:
            chosen = int(rng.random() * links.degree[node])
            trip_s = 2 * links.delays_s[node, chosen] * exp(jitter * rng.standard_normal())
            other = _place(places, links.others[node, chosen])
            now = moved(_place(places, node), other, max(trip_s, _SHORTEST_S), rng)
            places[node, 0], places[node, 1], places[node, 2] = now.position
            places[node, 3] = now.error
    for a in range(links.degree.size):
        for b in range(links.degree.size):
            estimates[a, b] = distance(_place(places, a), _place(places, b)) / 2


class RoundTrips:
    """Coordinates of all nodes, kept up to date by `measure`."""

    def __init__(
        self,
        delays_s: Mapping[str, Mapping[str, float]],
        rng: Generator,
        jitter: float = 0.1,  # of a measured round trip, standard deviation of its logarithm
    ) -> None:
        self._number = {name: number for number, name in enumerate(delays_s)}
        self._jitter, self._generator = jitter, OpenGenerator(rng)
        nowhere = unknown_place()
        self._places = np.array([(*nowhere.position, nowhere.error)] * len(delays_s))
        self._estimates = np.zeros((len(delays_s), len(delays_s)))
        self.relink(delays_s)
        for _ in range(_BEFORE_THE_START):
            self.measure()

    def relink(self, delays_s: Mapping[str, Mapping[str, float]]) -> None:
        """From now on, links between the same nodes have these delays."""
        self._delays_s, self._links = delays_s, _links(delays_s)
        self._code = machine_code(
            _measure, self._links, self._jitter, self._places, self._estimates, self._generator.address
        )

    def measure(self) -> None:
        """One round trip from every node to another one, chosen at random."""
        self._estimates = np.empty_like(self._estimates)  # those given away before stay as they were
        self._code(self._links, self._jitter, self._places, self._estimates, self._generator.address)

    def from_node(self, name: str) -> "Estimates":
        """Estimated seconds, one way, to every other node."""
        return Estimates(name, self._delays_s[name], self._number, self._estimates)


class Estimates(Mapping[str, float]):
    """Delays from one node, looked up when somebody asks: most are never asked for."""

    __slots__ = ("_estimates", "_linked", "_number", "_origin")

    def __init__(
        self, origin: str, linked: Mapping[str, float], number: Mapping[str, int], estimates: Floats
    ) -> None:
        self._origin, self._linked, self._number, self._estimates = origin, linked, number, estimates

    def __getitem__(self, other: str) -> float:
        if other not in self._linked:
            raise KeyError(other)
        return self._estimates.item(self._number[self._origin], self._number[other])

    def __contains__(self, other: object) -> bool:
        return other in self._linked

    def __iter__(self) -> Iterator[str]:
        return iter(self._linked)

    def __len__(self) -> int:
        return len(self._linked)
