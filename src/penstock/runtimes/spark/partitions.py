"""How many parts work is cut into, so that replicas share it well."""

from collections.abc import Sequence
from math import ceil
from typing import TypeVar

MOST_PARTITIONS = 24  # every partition of a stateful operator costs a state commit per micro-batch

T = TypeVar("T")


def imbalance(partitions: int, replicas: int) -> float:
    """Load of the busiest replica over the mean, when partitions are all alike."""
    return ceil(partitions / replicas) * replicas / partitions


def state_partitions(max_replicas: int) -> int:
    """The fewest partitions that divide best among any number of replicas up to the most there may be."""
    candidates = range(max_replicas, max(max_replicas, MOST_PARTITIONS) + 1)
    return min(
        candidates,
        key=lambda n: (round(max(imbalance(n, replicas) for replicas in range(1, max_replicas + 1)), 9), n),
    )


def shares(files: Sequence[tuple[T, int]], parts: int) -> list[list[tuple[T, int, int]]]:
    """Divide files with these numbers of tuples into parts of equal size: (file, first tuple, how many) each.

    The parts differ by one tuple at most; fewer parts where there are fewer tuples.
    """
    total = sum(tuples for _, tuples in files)
    parts = max(1, min(parts, total))
    bounds = [total * part // parts for part in range(parts + 1)]
    cut: list[list[tuple[T, int, int]]] = [[] for _ in range(parts)]
    begin = 0
    for file, tuples in files:
        for part in range(parts):
            first, last = max(begin, bounds[part]), min(begin + tuples, bounds[part + 1])
            if first < last:
                cut[part].append((file, first - begin, last - first))
        begin += tuples
    return [part for part in cut if part]
