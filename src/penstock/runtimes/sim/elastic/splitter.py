"""What the splitter does, event by event."""

from penstock.compiled import Floats, Ints, compiled
from penstock.runtimes.sim.elastic.buffers import drop, keep
from penstock.runtimes.sim.elastic.machine import (
    BLOCKED,
    DEQUEUING,
    FREE,
    NEVER,
    NONE,
    RECONFIGURING,
    ROUTING,
    Machine,
)
from penstock.runtimes.sim.elastic.protocol import Protocol


@compiled
def pick_up(m: Machine, arrival_s: float, key: int, ticks: float) -> None:
    """The splitter has a new tuple in its hands."""
    splitter = m.splitter[0]
    m.key[key].sequence += 1
    splitter.key = key
    splitter.sequence = m.key[key].sequence
    splitter.arrival_s = arrival_s
    splitter.ticks = ticks


@compiled
def passes_on(m: Machine, now: float) -> tuple[bool, int]:
    """Whether the splitter has let go of its tuple, and the replica that had been idle and gets it."""
    splitter = m.splitter[0]
    if splitter.doing == ROUTING and splitter.holding == 1 and m.key[splitter.key].moving == 1:
        hold_back(m)
        return True, NONE
    target = m.table[splitter.key]
    if has_room(m, target):
        hand_on(m, target, now)
        return True, target if m.next_s[target] == NEVER else NONE
    # It waits with its tuple, and others before it.
    splitter.doing = BLOCKED
    splitter.target = target
    splitter.blocked_since_s = now
    splitter.next_s = NEVER
    return False, NONE


@compiled
def unblocked(m: Machine, target: int, now: float) -> bool:
    """Whether this replica has taken a tuple and so made room for one the splitter held."""
    splitter = m.splitter[0]
    if splitter.doing != BLOCKED or splitter.target != target or not has_room(m, target):
        return False
    splitter.blocked_s += now - splitter.blocked_since_s
    hand_on(m, target, now)
    if m.next_s[target] == NEVER:
        m.next_s[target] = now  # a tuple it can set aside, at least
    return True


@compiled
def has_room(m: Machine, target: int) -> bool:
    queue = m.replica[target]
    return bool(queue.length - queue.messages < m.capacity)


@compiled
def may_empty_buffer(m: Machine, now: float) -> bool:
    """S-BLK: every state has moved, and the splitter has nothing in its hands."""
    splitter = m.splitter[0]
    if splitter.holding == 0 or splitter.unmoved > 0:
        return False
    return bool(splitter.doing == FREE or (splitter.doing == ROUTING and splitter.next_s - m.split_s > now))


@compiled
def schedule(m: Machine, arrivals_s: Floats, taken: int, now: float, message_s: float) -> None:
    """What the splitter does next: empty its buffer, read the controller's message, take a tuple."""
    splitter = m.splitter[0]
    now = max(now, splitter.free_s)  # it may have messages to send
    splitter.free_s = now
    arrival_s = max(arrivals_s[taken], now) if taken < arrivals_s.size else NEVER
    if splitter.holding and splitter.unmoved == 0:
        if splitter.kept_head != NONE:
            splitter.doing = DEQUEUING
            splitter.next_s = now + m.dequeue_s
            return
        splitter.holding = 0
        for key in range(m.key.size):
            m.key[key].moving = 0
    # One migration after the other: what a splitter keeps has one destination.
    if not splitter.holding and message_s < NEVER and message_s <= arrival_s:
        splitter.doing = RECONFIGURING
        splitter.next_s = max(now, message_s)
    elif arrival_s < NEVER:
        splitter.doing = ROUTING
        splitter.next_s = arrival_s + m.split_s
    else:
        splitter.doing = FREE
        splitter.next_s = NEVER


@compiled
def hand_on(m: Machine, target: int, now: float) -> None:
    """The splitter's tuple goes into a queue."""
    splitter = m.splitter[0]
    queue = m.replica[target]
    place = m.queue[target, (queue.head + queue.length) & (m.queue.shape[1] - 1)]
    place.arrival_s = splitter.arrival_s
    place.ticks = splitter.ticks
    place.sequence = splitter.sequence
    place.key = splitter.key
    queue.length += 1
    if m.routed.size > 0:
        routed = m.routed[m.clock[0].routed]
        routed.key = splitter.key
        routed.sequence = splitter.sequence
        routed.replica = target
        routed.at_s = now
        m.clock[0].routed += 1


@compiled
def hold_back(m: Machine) -> None:
    """The splitter's tuple goes into its own buffer (S-BLK)."""
    splitter = m.splitter[0]
    kept = keep(m, splitter.arrival_s, splitter.ticks, splitter.sequence, splitter.key)
    if splitter.kept_head == NONE:
        splitter.kept_head = kept
    else:
        m.kept[splitter.kept_tail].next = kept
    splitter.kept_tail = kept


@compiled
def let_go(m: Machine) -> None:
    """The splitter takes the first tuple out of its own buffer (S-BLK)."""
    splitter = m.splitter[0]
    kept = m.kept[splitter.kept_head]
    splitter.arrival_s = kept.arrival_s
    splitter.ticks = kept.ticks
    splitter.sequence = kept.sequence
    splitter.key = kept.key
    following = kept.next
    drop(m, splitter.kept_head)
    splitter.kept_head = following


@compiled
def reconfigured(m: Machine, table: Ints, protocol: int) -> None:
    """The splitter carries out the controller's message: one packed message to each replica involved.

    From here on it routes by the new table. `m.move` has room for every key that moves.
    """
    splitter = m.splitter[0]
    clock = m.clock[0]
    now = splitter.next_s
    for key in range(table.size - 1, -1, -1):
        source, target = m.table[key], table[key]
        if source == target:
            continue
        index = clock.free_moves
        move = m.move[index]
        clock.free_moves = move.next_out
        clock.moves += 1
        move.key = key
        move.target = target
        move.protocol = protocol
        move.saved = 0
        move.asked = 0
        move.then_out = NONE
        move.kept_head = NONE
        move.next_out = m.replica[source].listed_out
        m.replica[source].listed_out = index
        move.next_in = m.replica[target].listed_in
        m.replica[target].listed_in = index
        m.table[key] = target
        if protocol == Protocol.S_BLK:
            m.key[key].moving = 1
            splitter.unmoved += 1
            splitter.holding = 1
    sent = 0
    for index in range(m.next_s.size):
        replica = m.replica[index]
        if replica.listed_out == NONE and replica.listed_in == NONE:
            continue
        place = m.queue[index, (replica.head + replica.length) & (m.queue.shape[1] - 1)]
        place.key = NONE
        place.sequence = ((replica.listed_out + 1) << 32) | (replica.listed_in + 1)
        replica.length += 1
        replica.messages += 1
        replica.listed_out = NONE
        replica.listed_in = NONE
        if m.next_s[index] == NEVER:
            m.next_s[index] = now
        sent += 1
    splitter.doing = FREE
    splitter.free_s = now + sent * m.message_s
    splitter.next_s = NEVER
