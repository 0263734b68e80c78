"""Tuples set aside: linked records from one pool, so that compiled code allocates nothing."""

from penstock.compiled import compiled
from penstock.runtimes.sim.elastic.machine import NONE, Machine


@compiled
def keep(m: Machine, arrival_s: float, ticks: float, sequence: int, key: int) -> int:
    """A tuple aside, at the end of nothing yet."""
    clock = m.clock[0]
    index = clock.free_kept
    kept = m.kept[index]
    clock.free_kept = kept.next
    kept.arrival_s = arrival_s
    kept.ticks = ticks
    kept.sequence = sequence
    kept.key = key
    kept.next = NONE
    return int(index)


@compiled
def drop(m: Machine, index: int) -> None:
    m.kept[index].next = m.clock[0].free_kept
    m.clock[0].free_kept = index
