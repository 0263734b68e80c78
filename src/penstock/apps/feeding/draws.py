"""Numbers that look random and are decided by the tuple: the same wherever and however often it is made."""

import numpy as np

from penstock.compiled import Floats, Ints


def uniform(ids: Ints, seed: int) -> Floats:
    """A number in (0, 1) for each id, the same every time: splitmix64 (Steele, Lea, Flood 2014)."""
    with np.errstate(over="ignore"):  # it is meant to wrap around
        mixed = (ids.astype(np.uint64) + np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(1)) * (
            np.uint64(0x9E3779B97F4A7C15)
        )
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
