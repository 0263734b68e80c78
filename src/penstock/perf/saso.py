"""Stability, accuracy, settling time and overshoot (De Matteis 2017, sec. 2.3) of one run."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import dist, nan
from statistics import fmean


@dataclass(frozen=True, slots=True, kw_only=True)
class Saso:
    """Counted and averaged over one run."""

    steps: int
    reconfigurations: int  # stability: steps that began with another configuration
    violations: int  # accuracy: intervals outside the objective
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
    """Of steps one after the other; the first configuration is no change.

    `late`, `replicas` and `watts` may be of shorter intervals than steps: of seconds, say.
    """
    changes = [dist(now, then) for then, now in pairwise(configurations) if now != then]
    return Saso(
        steps=len(configurations),
        reconfigurations=len(changes),
        violations=sum(late),
        amplitude=sum(changes) / len(changes) if changes else nan,
        replicas=fmean(replicas) if replicas else 0.0,
        watts=fmean(watts) if watts else 0.0,
    )
