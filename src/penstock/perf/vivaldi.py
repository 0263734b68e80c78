"""Network delays estimated from a few measured round trips (Vivaldi; Dabek et al., SIGCOMM 2004).

Every node has a coordinate; the distance between two is the estimated round-trip time. A
measurement pulls or pushes both ends like a spring, the more so the less a node trusts its
own position and the more it trusts the other's.
"""

from math import isfinite, sqrt
from typing import NamedTuple

from numpy.random import Generator

from penstock.compiled import compiled
from penstock.domain.errors import InputError

Vector = tuple[float, float, float]

_TUNING = 0.25  # c_e and c_c of the paper
_CERTAIN = 1e-3


class Coordinate(NamedTuple):
    """Where a node is, and how wrong that may be (relative error)."""

    position: Vector
    error: float = 1.0


def unknown_place() -> Coordinate:
    return Coordinate((0.0, 0.0, 0.0))


@compiled
def distance(a: Coordinate, b: Coordinate) -> float:
    """Estimated round-trip time in seconds."""
    return _length(_between(a.position, b.position))


def observed(mine: Coordinate, other: Coordinate, round_trip_s: float, rng: Generator) -> Coordinate:
    """My coordinate after one measured round trip to the other."""
    if not (isfinite(round_trip_s) and round_trip_s > 0):
        raise InputError(f"round trip of {round_trip_s} s; it must be positive")
    return moved(mine, other, round_trip_s, rng)


@compiled
def moved(mine: Coordinate, other: Coordinate, round_trip_s: float, rng: Generator) -> Coordinate:
    """The same, for round trips that are known to be positive."""
    trust = mine.error / max(mine.error + other.error, _CERTAIN)
    away = _between(mine.position, other.position)
    estimate = _length(away)
    relative_error = abs(estimate - round_trip_s) / round_trip_s
    weight = _TUNING * trust
    error = max(relative_error * weight + mine.error * (1 - weight), _CERTAIN)
    # Two nodes at the same place are pushed apart in a random direction.
    x, y, z = _unit(away, estimate) if estimate > 0 else _random_direction(rng)
    push = weight * (round_trip_s - estimate)
    at_x, at_y, at_z = mine.position
    return Coordinate((at_x + push * x, at_y + push * y, at_z + push * z), error)


@compiled
def _between(a: Vector, b: Vector) -> Vector:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@compiled
def _length(vector: Vector) -> float:
    x, y, z = vector
    return sqrt(x * x + y * y + z * z)


@compiled
def _unit(vector: Vector, length: float) -> Vector:
    x, y, z = vector
    return x / length, y / length, z / length


@compiled
def _random_direction(rng: Generator) -> Vector:
    vector = (rng.standard_normal(), rng.standard_normal(), rng.standard_normal())
    return _unit(vector, _length(vector))
