"""The elastic operator without migration in plain Python: a heap of completions, a deque a replica.

What one would write first; the compiled one is measured against it, and must give the same times.
"""

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush


def delivered_s(
    arrivals_s: Sequence[float],
    keys: Sequence[int],
    service_s: Sequence[float],
    table: Sequence[int],
    *,
    capacity: int,
    split_s: float,
    merge_s: float,
) -> list[float]:
    """When each tuple's result leaves the merger."""
    queues: list[deque[int]] = [deque() for _ in range(max(table) + 1)]
    at_work = [False] * len(queues)
    completions: list[tuple[float, int, int]] = []  # (when, replica, tuple)
    results = [0.0] * len(arrivals_s)
    merger_free_s = 0.0

    def complete(until_s: float) -> float:
        """Everything up to then; the time of the last completion."""
        nonlocal merger_free_s
        now = 0.0
        while completions and completions[0][0] <= until_s:
            now, replica, done = heappop(completions)
            merger_free_s = max(now, merger_free_s) + merge_s
            results[done] = merger_free_s
            if queues[replica]:
                following = queues[replica].popleft()
                heappush(completions, (now + service_s[following], replica, following))
            else:
                at_work[replica] = False
        return now

    splitter_s = 0.0
    for index, (arrival_s, key) in enumerate(zip(arrivals_s, keys, strict=True)):
        splitter_s = max(splitter_s, arrival_s) + split_s
        complete(splitter_s)
        replica = table[key]
        while len(queues[replica]) == capacity:
            splitter_s = complete(completions[0][0])
        if at_work[replica]:
            queues[replica].append(index)
        else:
            at_work[replica] = True
            heappush(completions, (splitter_s + service_s[index], replica, index))
    complete(float("inf"))
    return results
