"""How fast an operator with keys is, whether its load is balanced or not (De Matteis 2017, eq. 1 to 5).

All of tuples that trigger a computation. Keys have frequencies (shares of the tuples) and computation times;
a table says which replica has which key.
"""

import numpy as np
import numpy.typing as npt

from penstock.compiled import Floats, Ints
from penstock.domain.errors import InputError

_GHZ = 1e9


def computation_s(ticks: npt.ArrayLike, ghz: float) -> Floats:
    """Eq. 1: clock cycles at a frequency."""
    if not 0 < ghz < np.inf:
        raise InputError(f"frequency {ghz} GHz; it must be positive and finite")
    return _checked("ticks", ticks) / (ghz * _GHZ)


def utilisations(
    table: Ints, shares: npt.ArrayLike, times_s: npt.ArrayLike, rate: float, replicas: int
) -> Floats:
    """Of every replica: its mean computation time over its mean time between arrivals (eq. 2)."""
    return _checked_rate(rate) * _work_s(table, shares, times_s, replicas)


def ideal_service_s(table: Ints, shares: npt.ArrayLike, times_s: npt.ArrayLike) -> float:
    """Eq. 3: between two results if there is always something to do, by the busiest replica."""
    return float(_work_s(table, shares, times_s, 1 + int(table.max(initial=0))).max())


def balanced_service_s(shares: npt.ArrayLike, times_s: npt.ArrayLike, replicas: int) -> float:
    """Eq. 5: the same if the load is balanced."""
    if replicas < 1:
        raise InputError(f"replicas={replicas}; at least one replica must run")
    return float(np.dot(_checked("shares", shares), _checked("times", times_s))) / replicas


def effective_service_s(ideal_s: float, rate: float) -> float:
    """Eq. 4: between two results; no less than between two arrivals."""
    return max(ideal_s, 1 / rate if _checked_rate(rate) > 0 else np.inf)


def _work_s(table: Ints, shares: npt.ArrayLike, times_s: npt.ArrayLike, replicas: int) -> Floats:
    """Of every replica, per tuple of the whole stream: its tuples' share times what one of them takes."""
    share, time_s = _checked("shares", shares), _checked("times", times_s)
    if not share.shape == time_s.shape == table.shape:
        raise InputError(f"{share.size} shares, {time_s.size} times and a table of {table.size} keys")
    if table.min() < 0 or table.max() >= replicas:
        raise InputError(f"table: replicas {table.min()} to {table.max()}, where {replicas} run")
    return np.bincount(table, weights=share * time_s, minlength=replicas).astype(np.float64)


def _checked_rate(rate: float) -> float:
    if not 0 <= rate < np.inf:
        raise InputError(f"rate {rate}; it must be finite and not negative")
    return rate


def _checked(what: str, values: npt.ArrayLike) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if found.size == 0:
        raise InputError(f"{what}: empty")
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise InputError(f"{what}: each must be finite and not negative")
    return found
