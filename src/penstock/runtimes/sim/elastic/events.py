"""The events of an elastic operator in the order of time, compiled.

Two kinds of events drive it: the splitter has finished something, or a replica has. What a
finished one does next is decided at once. The merger never holds anybody up, so its result
times follow from the order of completions. At equal times replicas go before the splitter.
"""

from penstock.compiled import Floats, Ints, compiled
from penstock.runtimes.sim.elastic.machine import (
    FREE,
    NONE,
    RECONFIGURING,
    ROUTING,
    WORKING,
    Machine,
)
from penstock.runtimes.sim.elastic.replica import finished, first_arrived, take_up
from penstock.runtimes.sim.elastic.splitter import (
    let_go,
    may_empty_buffer,
    passes_on,
    pick_up,
    schedule,
    unblocked,
)


@compiled
def run(
    m: Machine, arrivals_s: Floats, keys: Ints, ticks: Floats, taken: int, until_s: float, message_s: float
) -> int:
    """Every event up to `until_s`, or until the splitter is free for the message of `message_s`.

    Returns how many of the tuples the splitter has taken; it then waits in RECONFIGURING for
    the message to be carried out (`reconfigured`), or in whatever else it does.
    """
    splitter = m.splitter[0]
    clock = m.clock[0]
    if splitter.doing in (FREE, RECONFIGURING):  # there may be tuples that come before the message, now
        schedule(m, arrivals_s, taken, splitter.free_s, message_s)
    first = soonest(m)
    while True:
        now = min(m.next_s[first], splitter.next_s, clock.there_s)
        if now > until_s:
            return taken
        released = False  # the splitter has let go of its tuple
        free = NONE  # this replica looks for its next work
        if now == clock.there_s:
            first_arrived(m, now)
            first = soonest(m)
        elif now == m.next_s[first]:
            free = first
            finished(m, free, now)
            released = may_empty_buffer(m, now)
        elif splitter.doing == RECONFIGURING:
            return taken
        else:
            if splitter.doing == ROUTING:
                pick_up(m, arrivals_s[taken], keys[taken], ticks[taken])
                taken += 1
            else:
                let_go(m)
            released, free = passes_on(m, now)
        if free != NONE:
            take_up(m, free, now)
            released = unblocked(m, free, now) or released
            first = soonest(m)
        if released:
            schedule(m, arrivals_s, taken, now, message_s)


@compiled
def soonest(m: Machine) -> int:
    """The replica that is done first."""
    first = 0
    for index in range(1, m.next_s.size):
        if m.next_s[index] < m.next_s[first]:
            first = index
    return first


@compiled
def at_frequency(m: Machine, hertz: float, now: float) -> None:
    """Another clock rate from now on, for what replicas are in the middle of, too."""
    clock = m.clock[0]
    slower = 1 / hertz / clock.second_per_tick
    clock.second_per_tick = 1 / hertz
    for index in range(m.next_s.size):
        if m.replica[index].activity == WORKING:
            m.next_s[index] = now + (m.next_s[index] - now) * slower
