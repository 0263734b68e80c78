"""Network delays estimated from a few measured round trips (Vivaldi; Dabek et al., SIGCOMM 2004).

Every node has a coordinate; the distance between two is the estimated round-trip time. A
measurement pulls or pushes both ends like a spring, the more so the less a node trusts its
own position and the more it trusts the other's.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats
from penstock.domain.errors import InputError

DIMENSIONS = 3
_TUNING = 0.25  # c_e and c_c of the paper
_CERTAIN = 1e-3


@dataclass(frozen=True, eq=False)
class Coordinate:
    """Where a node is, and how wrong that may be (relative error)."""

    position: Floats
    error: float = 1.0


def unknown_place() -> Coordinate:
    return Coordinate(np.zeros(DIMENSIONS))


def distance(a: Coordinate, b: Coordinate) -> float:
    """Estimated round-trip time in seconds."""
    return float(np.linalg.norm(a.position - b.position))


def observed(mine: Coordinate, other: Coordinate, round_trip_s: float, rng: Generator) -> Coordinate:
    """My coordinate after one measured round trip to the other."""
    if not (np.isfinite(round_trip_s) and round_trip_s > 0):
        raise InputError(f"round trip of {round_trip_s} s; it must be positive")
    trust = mine.error / max(mine.error + other.error, _CERTAIN)
    estimate = distance(mine, other)
    relative_error = abs(estimate - round_trip_s) / round_trip_s
    weight = _TUNING * trust
    error = max(relative_error * weight + mine.error * (1 - weight), _CERTAIN)
    away = mine.position - other.position
    length = float(np.linalg.norm(away))
    # Two nodes at the same place are pushed apart in a random direction.
    direction = away / length if length > 0 else _random_direction(rng)
    moved = mine.position + weight * (round_trip_s - estimate) * direction
    return replace(mine, position=moved, error=error)


def _random_direction(rng: Generator) -> Floats:
    direction = rng.normal(size=DIMENSIONS)
    unit: Floats = direction / np.linalg.norm(direction)
    return unit
