"""Everything the simulated operator is made of, as arrays that compiled code changes in place."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.compiled import Floats, Ints

Records = npt.NDArray[np.void]

NONE = -1
NEVER = np.inf

# What a replica does until its `next_s`.
IDLE, WORKING, SAVING, ACQUIRING = range(4)
# What the splitter does until its `next_s`. A blocked one holds a tuple for a queue that is full.
FREE, ROUTING, DEQUEUING, RECONFIGURING, BLOCKED = range(5)

_TUPLE = [("arrival_s", "f8"), ("ticks", "f8"), ("sequence", "i8"), ("key", "i8")]
_STATE = [("processed", "i8"), ("digest", "i8")]
_REPLICA = [
    *_TUPLE,  # what it works on
    ("activity", "i8"),
    ("started_s", "f8"),
    ("since_s", "f8"),  # busy since then and not yet counted
    ("busy_s", "f8"),
    ("triggers", "i8"),  # whether the tuple yields a result
    ("head", "i8"),  # of its queue
    ("length", "i8"),
    ("messages", "i8"),  # among them: a message takes no tuple's place
    ("outs", "i8"),  # moves out of its last message that it has still to save
    ("move", "i8"),  # that it saves or acquires
    ("rolling", "i8"),  # move whose kept tuples it works off
    ("ready_head", "i8"),  # moves whose states wait for it in the store
    ("ready_tail", "i8"),
    ("blocked_by", "i8"),  # R-BLK: incoming keys it waits for
    ("listed_out", "i8"),  # lists of the message that is being packed
    ("listed_in", "i8"),
]
_MOVE = [  # one key on its way
    ("key", "i8"),
    ("target", "i8"),
    ("protocol", "i8"),
    ("saved", "i8"),
    ("there_s", "f8"),  # when its state can be acquired
    ("asked", "i8"),  # the new replica has had its message
    ("then_out", "i8"),  # the next move of this key, asked for before this one was over
    ("kept_head", "i8"),  # tuples that wait for it
    ("kept_tail", "i8"),
    ("next_out", "i8"),  # in lists
    ("next_in", "i8"),
    ("next_ready", "i8"),
    ("next_sent", "i8"),
]
_KEPT = [*_TUPLE, ("next", "i8")]
_KEY = [
    ("sequence", "i8"),  # of its last tuple that the splitter took
    ("done", "i8"),  # since the last measurement
    ("ticks", "f8"),
    ("moving", "i8"),  # S-BLK: its tuples wait at the splitter
]
_SPLITTER = [
    *_TUPLE,  # what it holds while blocked
    ("doing", "i8"),
    ("next_s", "f8"),
    ("free_s", "f8"),  # when it last let go of something
    ("target", "i8"),  # the replica it is blocked by
    ("blocked_since_s", "f8"),
    ("blocked_s", "f8"),
    ("holding", "i8"),  # S-BLK: a migration is under way
    ("unmoved", "i8"),  # its keys not yet acquired
    ("kept_head", "i8"),
    ("kept_tail", "i8"),
]
_TOTALS = [
    ("delivered", "i8"),
    ("latency_s", "f8"),
    ("max_latency_s", "f8"),
    ("waiting_s", "f8"),
    ("service_s", "f8"),
    ("service_squared", "f8"),
    ("out_of_order", "i8"),  # tuples that met a state other than the one their predecessor left
]
_CLOCK = [
    ("second_per_tick", "f8"),
    ("merger_free_s", "f8"),
    ("there_s", "f8"),  # when the next state on its way can be acquired
    ("sent_head", "i8"),  # states on their way, the first first
    ("sent_tail", "i8"),
    ("moves", "i8"),  # under way
    ("free_moves", "i8"),
    ("free_kept", "i8"),
    ("processed", "i8"),  # tuples, ever
    ("traced", "i8"),
    ("routed", "i8"),
]
_INTERVAL = [("results", "i8"), ("latency_s", "f8"), ("max_latency_s", "f8")]
_TRACE = [
    ("key", "i8"),
    ("sequence", "i8"),
    ("replica", "i8"),
    ("started_s", "f8"),
    ("done_s", "f8"),
]
_ROUTED = [("key", "i8"), ("sequence", "i8"), ("replica", "i8"), ("at_s", "f8")]


class Machine(NamedTuple):
    """The operator and all that is under way in it."""

    capacity: int  # tuples a queue holds
    slide: int  # every so many tuples of a key, one triggers the computation
    split_s: float
    merge_s: float
    insert_ticks: float
    message_s: float
    save_s: float
    acquire_s: float
    transfer_s: float
    dequeue_s: float
    table: Ints  # key -> replica
    next_s: Floats  # when each replica has done what it does
    replica: Records
    queue: Records  # (replica, place)
    state: Records  # (key, replica): every replica has its own copy, right or stale
    store: Records  # key -> the state between two replicas
    waits_for: Ints  # (replica, key) -> the move its tuples wait for
    move: Records
    kept: Records  # tuples in pending buffers, linked
    key: Records
    splitter: Records  # one, as the next two
    totals: Records
    clock: Records
    interval: Records  # results by the interval they are delivered in; empty unless asked for
    interval_s: float
    trace: Records  # what was processed, in that order; empty unless asked for
    routed: Records  # what the splitter handed on, in that order; empty unless asked for


def records(fields: list[tuple[str, str]], *shape: int) -> Records:
    """Zeroed records whose fields are attributes, in compiled code and in Python."""
    return np.zeros(shape, dtype=np.dtype(fields, align=True)).view(np.recarray)


def linked(fields: list[tuple[str, str]], size: int, by: str) -> Records:
    """Records of which all are free, linked from the first to the last."""
    made = records(fields, size)
    made[by] = np.arange(1, size + 1)
    made[by][-1:] = NONE
    return made


def moves_of(size: int) -> Records:
    return linked(_MOVE, size, "next_out")


def kept_of(size: int) -> Records:
    return linked(_KEPT, size, "next")


def intervals_of(size: int) -> Records:
    return records(_INTERVAL, size)


def trace_of(size: int) -> Records:
    return records(_TRACE, size)


def routed_of(size: int) -> Records:
    return records(_ROUTED, size)


def queues_of(replicas: int, places: int) -> Records:
    return records(_TUPLE, replicas, places)


def fresh(keys: int, replicas: int, capacity: int) -> dict[str, Records | Floats | Ints]:
    """The parts of an operator in which nothing has happened yet."""
    replica = records(_REPLICA, replicas)
    for name in ("outs", "move", "rolling", "ready_head", "listed_out", "listed_in"):
        replica[name] = NONE
    splitter = records(_SPLITTER, 1)
    splitter["next_s"] = NEVER
    splitter["kept_head"] = NONE
    clock = records(_CLOCK, 1)
    clock["there_s"] = NEVER
    clock["sent_head"] = NONE
    return {
        "next_s": np.full(replicas, NEVER),
        "replica": replica,
        "queue": queues_of(replicas, 1 << capacity.bit_length()),
        "state": records(_STATE, keys, replicas),
        "store": records(_STATE, keys),
        "waits_for": np.full((replicas, keys), NONE, dtype=np.int64),
        "move": moves_of(1),
        "kept": kept_of(1),
        "key": records(_KEY, keys),
        "splitter": splitter,
        "totals": records(_TOTALS, 1),
        "clock": clock,
        "interval": intervals_of(0),
        "trace": trace_of(0),
        "routed": routed_of(0),
    }
