"""What a replica does, event by event: its tuples, and the states it gives and gets."""

from penstock.compiled import compiled
from penstock.runtimes.sim.elastic.buffers import drop, keep
from penstock.runtimes.sim.elastic.machine import ACQUIRING, IDLE, NEVER, NONE, SAVING, WORKING, Machine
from penstock.runtimes.sim.elastic.protocol import Protocol

_MULTIPLIER = 6364136223846793005  # of a linear congruential generator: the digest depends on the order


@compiled
def finished(m: Machine, index: int, now: float) -> None:
    """A replica has done what it was at."""
    activity = m.replica[index].activity
    if activity == WORKING:
        processed(m, index, now)
    elif activity == SAVING:
        saved(m, index, now)
    elif activity == ACQUIRING:
        acquired(m, index, now)


@compiled
def take_up(m: Machine, index: int, now: float) -> None:
    """What a replica does next.

    In this order: save what it has to give, work off the tuples of a key it has got, acquire a
    state that is ready, and only then look into its queue.
    """
    replica = m.replica[index]
    replica.activity = IDLE
    replica.since_s = now
    while True:
        if replica.outs != NONE:
            if gives_next(m, index, now):
                return
        elif replica.rolling != NONE:
            if rolls_on(m, index, now):
                return
        elif replica.ready_head != NONE:
            replica.move = replica.ready_head
            replica.ready_head = m.move[replica.move].next_ready
            replica.activity = ACQUIRING
            m.next_s[index] = now + m.acquire_s
            return
        elif replica.blocked_by > 0 or replica.length == 0:
            m.next_s[index] = NEVER
            return
        elif receives(m, index, now):
            return


@compiled
def gives_next(m: Machine, index: int, now: float) -> bool:
    """Whether it saves the next state of its message now; one that has not come yet goes on later."""
    replica = m.replica[index]
    move = replica.outs
    replica.outs = m.move[move].next_out
    earlier = m.waits_for[index, m.move[move].key]
    if earlier == NONE:
        begin_saving(m, index, move, now)
        return True
    m.move[earlier].then_out = move
    return False


@compiled
def rolls_on(m: Machine, index: int, now: float) -> bool:
    """Whether there is more to do for the key that has come: tuples it kept, or its next move."""
    replica = m.replica[index]
    move = replica.rolling
    following = m.move[move].kept_head
    if following != NONE:
        kept = m.kept[following]
        m.move[move].kept_head = kept.next
        drop(m, following)
        begin_work(m, index, kept.arrival_s, kept.ticks, kept.sequence, kept.key, now)
        return True
    replica.rolling = NONE
    then_out = settled(m, index, move)
    if then_out != NONE:
        begin_saving(m, index, then_out, now)
        return True
    return False


@compiled
def receives(m: Machine, index: int, now: float) -> bool:
    """Takes the first of its queue; whether it works on that."""
    replica = m.replica[index]
    place = m.queue[index, replica.head]
    replica.head = (replica.head + 1) & (m.queue.shape[1] - 1)
    replica.length -= 1
    if place.key == NONE:
        replica.messages -= 1
        unpack(m, index, place.sequence)
        return False
    awaited = m.waits_for[index, place.key] if m.clock[0].moves > 0 else NONE
    if awaited == NONE:
        begin_work(m, index, place.arrival_s, place.ticks, place.sequence, place.key, now)
        return True
    kept = keep(m, place.arrival_s, place.ticks, place.sequence, place.key)
    coming = m.move[awaited]
    if coming.kept_head == NONE:
        coming.kept_head = kept
    else:
        m.kept[coming.kept_tail].next = kept
    coming.kept_tail = kept
    return False


@compiled
def begin_work(
    m: Machine, index: int, arrival_s: float, ticks: float, sequence: int, key: int, now: float
) -> None:
    replica = m.replica[index]
    replica.activity = WORKING
    replica.arrival_s = arrival_s
    replica.started_s = now
    replica.sequence = sequence
    replica.key = key
    triggers = m.slide == 1 or (m.state[key, index].processed + 1) % m.slide == 0
    replica.triggers = 1 if triggers else 0
    replica.ticks = ticks if triggers else m.insert_ticks
    m.next_s[index] = now + replica.ticks * m.clock[0].second_per_tick


@compiled
def begin_saving(m: Machine, index: int, move: int, now: float) -> None:
    m.replica[index].activity = SAVING
    m.replica[index].move = move
    m.next_s[index] = now + m.save_s


@compiled
def processed(m: Machine, index: int, now: float) -> None:
    """A replica has worked on a tuple: its key's state is another, and there may be a result."""
    replica = m.replica[index]
    totals = m.totals[0]
    clock = m.clock[0]
    key = replica.key
    state = m.state[key, index]
    state.processed += 1
    if replica.sequence != state.processed:
        totals.out_of_order += 1
    state.digest = state.digest * _MULTIPLIER + (replica.sequence ^ int(replica.ticks))
    replica.busy_s += now - replica.since_s
    clock.processed += 1
    if m.trace.size > 0:
        traced = m.trace[clock.traced]
        traced.key = key
        traced.sequence = replica.sequence
        traced.replica = index
        traced.started_s = replica.started_s
        traced.done_s = now
        clock.traced += 1
    if replica.triggers:
        delivered_s = max(now, clock.merger_free_s) + m.merge_s
        clock.merger_free_s = delivered_s
        latency_s = delivered_s - replica.arrival_s
        service_s = now - replica.started_s
        totals.delivered += 1
        totals.latency_s += latency_s
        totals.max_latency_s = max(totals.max_latency_s, latency_s)
        totals.waiting_s += replica.started_s - replica.arrival_s
        totals.service_s += service_s
        totals.service_squared += service_s * service_s
        m.key[key].done += 1
        m.key[key].ticks += replica.ticks
        if m.interval.size > 0:
            interval = m.interval[min(int(delivered_s / m.interval_s), m.interval.size - 1)]
            interval.results += 1
            interval.latency_s += latency_s
            interval.max_latency_s = max(interval.max_latency_s, latency_s)


@compiled
def unpack(m: Machine, index: int, message: int) -> None:
    """A replica reads its message: keys it gives away and keys that come to it."""
    replica = m.replica[index]
    replica.outs = (message >> 32) - 1
    move = (message & 0xFFFFFFFF) - 1
    while move != NONE:
        coming = m.move[move]
        m.waits_for[index, coming.key] = move
        coming.asked = 1
        if coming.protocol == Protocol.R_BLK:
            replica.blocked_by += 1
        if coming.saved:
            make_ready(m, index, move)
        move = coming.next_in


@compiled
def make_ready(m: Machine, index: int, move: int) -> None:
    replica = m.replica[index]
    m.move[move].next_ready = NONE
    if replica.ready_head == NONE:
        replica.ready_head = move
    else:
        m.move[replica.ready_tail].next_ready = move
    replica.ready_tail = move


@compiled
def saved(m: Machine, index: int, now: float) -> None:
    """A replica has given a state away, and it is on its way through the store."""
    replica = m.replica[index]
    replica.busy_s += now - replica.since_s
    move = m.move[replica.move]
    m.store[move.key].processed = m.state[move.key, index].processed
    m.store[move.key].digest = m.state[move.key, index].digest
    if m.transfer_s > 0:
        clock = m.clock[0]
        move.there_s = now + m.transfer_s
        move.next_sent = NONE
        if clock.sent_head == NONE:
            clock.sent_head = replica.move
            clock.there_s = move.there_s
        else:
            m.move[clock.sent_tail].next_sent = replica.move
        clock.sent_tail = replica.move
    else:
        arrived(m, replica.move, now)


@compiled
def arrived(m: Machine, index: int, now: float) -> None:
    """A state can be acquired; whoever waits for it with nothing else to do goes on now."""
    move = m.move[index]
    move.saved = 1
    if move.asked:
        make_ready(m, move.target, index)
        if m.next_s[move.target] == NEVER:
            m.next_s[move.target] = now


@compiled
def first_arrived(m: Machine, now: float) -> None:
    """Of the states on their way, the first is there. All take the same time, so they come in order."""
    clock = m.clock[0]
    index = clock.sent_head
    clock.sent_head = m.move[index].next_sent
    clock.there_s = m.move[clock.sent_head].there_s if clock.sent_head != NONE else NEVER
    arrived(m, index, now)


@compiled
def acquired(m: Machine, index: int, now: float) -> None:
    """A replica has the state it asked for; tuples that waited for it are next."""
    replica = m.replica[index]
    replica.busy_s += now - replica.since_s
    move = m.move[replica.move]
    m.state[move.key, index].processed = m.store[move.key].processed
    m.state[move.key, index].digest = m.store[move.key].digest
    replica.rolling = replica.move
    if move.protocol == Protocol.R_BLK:
        replica.blocked_by -= 1
    elif move.protocol == Protocol.S_BLK:
        m.splitter[0].unmoved -= 1


@compiled
def settled(m: Machine, index: int, move: int) -> int:
    """A key has arrived and its tuples are worked off; the move it makes next, if it was asked for."""
    done = m.move[move]
    clock = m.clock[0]
    if m.waits_for[index, done.key] == move:
        m.waits_for[index, done.key] = NONE
    done.next_out = clock.free_moves
    clock.free_moves = move
    clock.moves -= 1
    return int(done.then_out)
