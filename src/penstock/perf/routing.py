"""Routing tables: which replica a key goes to, and tables that balance load (De Matteis 2017, sec. 3.3).

A table is an array, key -> replica; a key's load is the work it brings, frequency times time per
tuple in any unit. Finding the table whose busiest replica has least to do is NP-hard; longest
processing time first (Graham 1969) is within 4/3 - 1/(3 n) of it. So is finding the one that moves
fewest keys; that one here is greedy.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from penstock.compiled import Floats, Ints, compiled
from penstock.domain.errors import InputError

_NOT_THERE = -1


def balanced(load_of_keys: npt.ArrayLike, replicas: int) -> Ints:
    """Balance all: the heaviest key first, each to the replica that has least so far.

    Keys without load go where fewest keys are, so that they do not meet when their load comes.
    """
    loads = _checked_loads(load_of_keys, replicas)
    table = np.full(loads.size, _NOT_THERE, dtype=np.int64)
    load_of_replicas = np.zeros(replicas)
    _place(loads, _heaviest_first(loads), table, load_of_replicas, np.zeros(replicas, dtype=np.int64))
    return table


def moving_few(table: Ints, load_of_keys: npt.ArrayLike, replicas: int, tolerance: float) -> Ints:
    """Move few: keys stay, except where their replica is gone or more than `tolerance` above the mean.

    From the busiest replica, the largest key the least busy one can take goes there, until no
    replica is above the mean by more than `tolerance` of it, or none can be relieved. Where
    only `balanced` gets within the tolerance, or gets as far with fewer keys, its table is taken.
    """
    loads = _checked_loads(load_of_keys, replicas)
    if not 0 <= tolerance < np.inf:
        raise InputError(f"tolerance={tolerance}; a share of the mean load, from 0 up")
    before = _checked_table(table, loads)
    few = np.where(before < replicas, before, _NOT_THERE)
    load_of_replicas = _load_of_replicas(few, loads, replicas)
    keys_of_replicas = np.bincount(few[few >= 0], minlength=replicas)
    order = _heaviest_first(loads)
    _place(loads, order, few, load_of_replicas, keys_of_replicas)
    limit = (1 + tolerance + 1e-12) * loads.sum() / replicas  # sums differ in their last digits
    _relieve(loads, order, few, load_of_replicas, limit)
    every = balanced(loads, replicas)
    after_few, after_all = excess(few, loads, replicas), excess(every, loads, replicas)
    only_all_will_do = after_all <= tolerance + 1e-12 < after_few
    all_is_less = after_all <= max(tolerance, after_few) and moved(before, every) < moved(before, few)
    return every if only_all_will_do or all_is_less else few


def imbalance(table: Ints, load_of_keys: npt.ArrayLike, replicas: int) -> float:
    """What the most loaded replica has more than the least loaded, in mean loads (sec. 3.3)."""
    loads = _checked_loads(load_of_keys, replicas)
    load_of_replicas = _load_of_replicas(_checked_table(table, loads, replicas), loads, replicas)
    mean = load_of_replicas.mean()
    return float((load_of_replicas.max() - load_of_replicas.min()) / mean) if mean > 0 else 0.0


def excess(table: Ints, load_of_keys: npt.ArrayLike, replicas: int) -> float:
    """What the most loaded replica has more than the mean, in mean loads: what throughput suffers from."""
    loads = _checked_loads(load_of_keys, replicas)
    load_of_replicas = _load_of_replicas(_checked_table(table, loads, replicas), loads, replicas)
    mean = load_of_replicas.mean()
    return float(load_of_replicas.max() / mean) - 1 if mean > 0 else 0.0


def moved(old: Ints, new: Ints) -> int:
    """How many keys the new table sends elsewhere."""
    return int(np.count_nonzero(np.asarray(old) != np.asarray(new)))


class Moves(Enum):
    """How many keys a rebalancing may move."""

    ALL = "balance all"  # what a shared memory allows
    FEW = "move few"  # where states are copied between machines


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalancer:
    """A new table when the load is out of balance, or the replicas are others than before."""

    threshold: float = 0.1  # imbalance that is put up with; not printed
    moves: Moves = Moves.ALL
    tolerance: float = 0.05  # of `moving_few`; not printed

    def __post_init__(self) -> None:
        if not (0 <= self.threshold < np.inf and 0 <= self.tolerance < np.inf):
            raise InputError(f"threshold={self.threshold}, tolerance={self.tolerance}; both from 0 up")

    def table(self, current: Ints, load_of_keys: npt.ArrayLike, *, replicas: int, before: int) -> Ints | None:
        """The table to go over to; None where the current one will do. `before`: replicas until now."""
        if replicas == before and imbalance(current, load_of_keys, replicas) <= self.threshold:
            return None
        if self.moves is Moves.ALL:
            wanted = balanced(load_of_keys, replicas)
        else:
            wanted = moving_few(current, load_of_keys, replicas, self.tolerance)
        return wanted if moved(current, wanted) else None


def _heaviest_first(loads: Floats) -> Ints:
    return np.argsort(-loads, kind="stable")


def _load_of_replicas(table: Ints, loads: Floats, replicas: int) -> Floats:
    there = table >= 0
    return np.bincount(table[there], weights=loads[there], minlength=replicas).astype(np.float64)


@compiled
def _place(loads: Floats, order: Ints, table: Ints, load_of_replicas: Floats, keys_of_replicas: Ints) -> None:
    """Every key that has no replica, in this order, to the one with least to do."""
    for key in order:
        if table[key] != _NOT_THERE:
            continue
        least = 0
        for replica in range(1, load_of_replicas.size):
            if loads[key] > 0 and load_of_replicas[replica] != load_of_replicas[least]:
                less = load_of_replicas[replica] < load_of_replicas[least]
            else:
                less = keys_of_replicas[replica] < keys_of_replicas[least]
            least = replica if less else least
        table[key] = least
        load_of_replicas[least] += loads[key]
        keys_of_replicas[least] += 1


@compiled
def _relieve(loads: Floats, order: Ints, table: Ints, load_of_replicas: Floats, limit: float) -> None:
    """One key after the other from the busiest replica to the least busy, the largest that fits."""
    while True:
        busiest, least = load_of_replicas.argmax(), load_of_replicas.argmin()
        if load_of_replicas[busiest] <= limit:
            return
        gap = load_of_replicas[busiest] - load_of_replicas[least]
        fitting, relieving = _NOT_THERE, _NOT_THERE
        for key in order:
            if table[key] != busiest or loads[key] == 0:
                continue
            # The last of those too large is the smallest that relieves; beyond the gap none does.
            if loads[key] < gap * (1 - 1e-9):
                relieving = key
                if load_of_replicas[least] + loads[key] <= limit:
                    fitting = key
                    break
        chosen = fitting if fitting != _NOT_THERE else relieving
        if chosen == _NOT_THERE:
            return
        table[chosen] = least
        load_of_replicas[busiest] -= loads[chosen]
        load_of_replicas[least] += loads[chosen]


def _checked_loads(load_of_keys: npt.ArrayLike, replicas: int) -> Floats:
    loads = np.asarray(load_of_keys, dtype=np.float64)
    if replicas < 1:
        raise InputError(f"replicas={replicas}; at least one replica must run")
    if loads.ndim != 1 or loads.size == 0:
        raise InputError(f"load of keys: one number for each key, not an array of shape {loads.shape}")
    if not (np.isfinite(loads).all() and loads.min() >= 0):
        raise InputError("load of keys: a load is a number from 0 up")
    return loads


def _checked_table(table: Ints, loads: Floats, replicas: int | None = None) -> Ints:
    checked = np.asarray(table, dtype=np.int64)
    if checked.shape != loads.shape:
        raise InputError(f"table of {checked.size} keys, load of {loads.size}; give both for the same keys")
    if checked.min() < 0 or (replicas is not None and checked.max() >= replicas):
        raise InputError(f"table: replicas count from 0, and there are {replicas or 'some'}")
    return checked
