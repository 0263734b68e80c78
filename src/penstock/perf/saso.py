"""Stability, accuracy, settling time and overshoot (De Matteis 2017, sec. 2.3) of one run."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import dist, nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Saso:
    """Counted and averaged over the steps of one run."""

    steps: int
    reconfigurations: int  # stability: steps that began with another configuration
    violations: int  # accuracy: steps outside the objective
    amplitude: float  # settling time: mean Euclidean distance of changes; not a number where none were
    replicas: float  # overshoot: mean
    watts: float  # mean


def saso(
    configurations: Sequence[tuple[float, ...]],
    *,
    late: Sequence[bool],
    replicas: Sequence[float],
    watts: Sequence[float],
) -> Saso:
    """Of steps one after the other; the first configuration is no change."""
    changes = [dist(now, then) for then, now in pairwise(configurations) if now != then]
    steps = len(configurations)
    return Saso(
        steps=steps,
        reconfigurations=len(changes),
        violations=sum(late),
        amplitude=sum(changes) / len(changes) if changes else nan,
        replicas=sum(replicas) / steps if steps else 0.0,
        watts=sum(watts) / steps if steps else 0.0,
    )
