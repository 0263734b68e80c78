"""All deployments of one operator as numbers a kernel can follow.

A deployment is a count of replicas per node type, 1 to `max_replicas` in all. A *handle*
names one. Where all deployments fit in memory they are enumerated and a handle is a row
number; otherwise (10 types and 20 replicas make 30 million) a handle packs the counts
into the bits of one integer and everything about it is computed when asked.

Actions, in the order that breaks ties: 0 does nothing, 1..N removes a replica of type
0..N-1, N+1..2N adds one (Russo 2023, eq. 1).
"""

from collections.abc import Sequence
from functools import lru_cache
from math import comb
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints, compiled, frozen_floats, frozen_ints
from penstock.domain.deployment import Replicas, check_max_replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType

LARGEST_ENUMERATION = 300_000
NOTHING = 0
NOWHERE = -1  # the action is not possible here


class Deployments(NamedTuple):
    """The deployments of one operator; arrays are empty when handles are packed."""

    speedup: Floats  # per node type
    price: Floats  # per node type
    max_replicas: int
    bits: int  # per count in a packed handle
    enumerated: bool
    packed: Ints  # of each row, ascending
    successor: Ints  # row x action -> row or NOWHERE
    replicas: Ints  # per row
    slowest: Floats  # smallest speedup in use, per row
    speed: Floats  # sum of speedups, per row
    cost: Floats  # sum of prices, per row


def deployments(
    node_types: Sequence[NodeType], max_replicas: int, *, enumerate_up_to: int = LARGEST_ENUMERATION
) -> Deployments:
    """Every deployment of 1 to `max_replicas` replicas over these node types."""
    check_max_replicas(max_replicas)
    types = len(node_types)
    bits = max_replicas.bit_length()
    if types * bits > 62:
        raise InputError(f"{types} node types with {max_replicas} replicas: too many deployments to number")
    speedup = frozen_floats([t.speedup for t in node_types])
    price = frozen_floats([t.price for t in node_types])
    enumerated = comb(types + max_replicas, types) - 1 <= enumerate_up_to
    counts = _all_counts(types, max_replicas) if enumerated else np.zeros((0, types), dtype=np.int64)
    packed = _pack(counts, bits)
    slowest, speed, cost = _consequences(packed, bits, speedup, price)
    return Deployments(
        speedup=speedup,
        price=price,
        max_replicas=int(max_replicas),
        bits=bits,
        enumerated=enumerated,
        packed=frozen_ints(packed),
        successor=frozen_ints(_successors(counts, packed, bits, max_replicas)),
        replicas=frozen_ints(counts.sum(axis=1)),
        slowest=slowest,
        speed=speed,
        cost=cost,
    )


@lru_cache(maxsize=32)
def known_deployments(node_types: tuple[NodeType, ...], max_replicas: int) -> Deployments:
    """The same, made once: managers of many operators, and many runs, share what never changes."""
    return deployments(node_types, max_replicas)


def with_types(space: Deployments, *, speedup: Floats, price: Floats) -> Deployments:
    """The same deployments with other speeds or prices: same handles, other consequences."""
    if not len(speedup) == len(price) == space.speedup.size:
        raise InputError(f"{len(speedup)} speeds and {len(price)} prices for {space.speedup.size} node types")
    speedup, price = frozen_floats(speedup), frozen_floats(price)
    slowest, speed, cost = _consequences(space.packed, space.bits, speedup, price)
    return space._replace(speedup=speedup, price=price, slowest=slowest, speed=speed, cost=cost)


def handle_of(space: Deployments, replicas: Replicas) -> int:
    """The handle of these replicas."""
    counts = np.array([replicas.counts], dtype=np.int64)
    if counts.shape[1] != space.speedup.size:
        raise InputError(f"replicas {replicas.counts}: {space.speedup.size} node types are known")
    if replicas.total > space.max_replicas:
        raise InputError(f"replicas {replicas.counts}: more than max_replicas={space.max_replicas}")
    key = int(_pack(counts, space.bits)[0])
    return int(np.searchsorted(space.packed, key)) if space.enumerated else key


def replicas_at(space: Deployments, handle: int) -> Replicas:
    """The replicas a handle stands for."""
    key = space.packed[handle : handle + 1] if space.enumerated else np.array([handle], dtype=np.int64)
    return Replicas(tuple(int(count) for count in _unpack(key, space.bits, space.speedup.size)[0]))


class Handles:
    """Handles and replicas of one operator, each worked out once: numpy takes 10 µs for a single one."""

    def __init__(self, space: Deployments) -> None:
        self._space = space
        self._handles: dict[tuple[int, ...], int] = {}
        self._replicas: dict[int, Replicas] = {}

    def of(self, replicas: Replicas) -> int:
        handle = self._handles.get(replicas.counts)
        if handle is None:
            handle = self._handles[replicas.counts] = handle_of(self._space, replicas)
        return handle

    def find(self, counts: tuple[int, ...]) -> int | None:
        """The same for counts of replicas, or None where they are more than there may be."""
        handle = self._handles.get(counts)
        if handle is None and sum(counts) <= self._space.max_replicas:
            handle = self.of(Replicas(counts))
        return handle

    def replicas(self, handle: int) -> Replicas:
        replicas = self._replicas.get(handle)
        if replicas is None:
            replicas = self._replicas[handle] = replicas_at(self._space, handle)
        return replicas


def counts_at(space: Deployments, handles: Ints) -> Ints:
    """Replicas per type of many handles at once: one row each."""
    keys = space.packed[handles] if space.enumerated else handles
    return _unpack(keys, space.bits, space.speedup.size)


def _all_counts(types: int, max_replicas: int) -> Ints:
    counts = np.zeros((1, 0), dtype=np.int64)
    for _ in range(types):
        room = max_replicas - counts.sum(axis=1) + 1
        prefix = np.repeat(counts, room, axis=0)
        starts = np.cumsum(room) - room
        digit = np.arange(room.sum(), dtype=np.int64) - np.repeat(starts, room)
        counts = np.column_stack([prefix, digit])
    return counts[1:]  # the first row runs nothing at all


def _shifts(types: int, bits: int) -> Ints:
    return bits * np.arange(types - 1, -1, -1, dtype=np.int64)  # first type most significant


def _pack(counts: Ints, bits: int) -> Ints:
    packed: Ints = (counts << _shifts(counts.shape[1], bits)).sum(axis=1, dtype=np.int64)
    return packed


def _unpack(packed: Ints, bits: int, types: int) -> Ints:
    unpacked: Ints = (packed[:, None] >> _shifts(types, bits)) & ((1 << bits) - 1)
    return unpacked


def _consequences(packed: Ints, bits: int, speedup: Floats, price: Floats) -> tuple[Floats, Floats, Floats]:
    """Slowest speedup, sum of speedups and sum of prices, per row."""
    slowest, speed, cost = np.full(packed.size, np.inf), np.zeros(packed.size), np.zeros(packed.size)
    _fill(frozen_ints(packed), bits, speedup, price, slowest, speed, cost)
    return frozen_floats(slowest), frozen_floats(speed), frozen_floats(cost)


@compiled
def _fill(
    packed: Ints, bits: int, speedup: Floats, price: Floats, slowest: Floats, speed: Floats, cost: Floats
) -> None:
    for row in range(packed.size):
        for node_type in range(speedup.size):
            count = (packed[row] >> (bits * (speedup.size - 1 - node_type))) & ((1 << bits) - 1)
            if count > 0:
                slowest[row] = min(slowest[row], speedup[node_type])
                speed[row] += count * speedup[node_type]
                cost[row] += count * price[node_type]


def _successors(counts: Ints, packed: Ints, bits: int, max_replicas: int) -> Ints:
    rows, types = counts.shape
    successor = np.full((rows, 2 * types + 1), NOWHERE, dtype=np.int64)
    successor[:, NOTHING] = np.arange(rows)
    total = counts.sum(axis=1)
    for node_type, shift in enumerate(_shifts(types, bits)):
        one = np.int64(1) << shift
        can_remove = (counts[:, node_type] > 0) & (total > 1)
        can_add = total < max_replicas
        successor[can_remove, 1 + node_type] = np.searchsorted(packed, packed[can_remove] - one)
        successor[can_add, 1 + types + node_type] = np.searchsorted(packed, packed[can_add] + one)
    return successor


@compiled
def count_of(space: Deployments, handle: int, node_type: int) -> int:
    """Replicas of one node type."""
    key = space.packed[handle] if space.enumerated else handle
    shift = space.bits * (space.speedup.size - 1 - node_type)
    return (key >> shift) & ((1 << space.bits) - 1)


@compiled
def replicas_of(space: Deployments, handle: int) -> int:
    """Replicas in all."""
    if space.enumerated:
        return int(space.replicas[handle])
    total = 0
    for node_type in range(space.speedup.size):
        total += count_of(space, handle, node_type)
    return total


@compiled
def slowest_of(space: Deployments, handle: int) -> float:
    """Speedup of the slowest replica."""
    if space.enumerated:
        return float(space.slowest[handle])
    slowest = np.inf
    for node_type in range(space.speedup.size):
        if count_of(space, handle, node_type) > 0:
            slowest = min(slowest, space.speedup[node_type])
    return slowest


@compiled
def speed_of(space: Deployments, handle: int) -> float:
    """Sum of the replicas' speedups."""
    if space.enumerated:
        return float(space.speed[handle])
    speed = 0.0
    for node_type in range(space.speedup.size):
        speed += count_of(space, handle, node_type) * space.speedup[node_type]
    return speed


@compiled
def cost_of(space: Deployments, handle: int) -> float:
    """Sum of the replicas' prices."""
    if space.enumerated:
        return float(space.cost[handle])
    cost = 0.0
    for node_type in range(space.speedup.size):
        cost += count_of(space, handle, node_type) * space.price[node_type]
    return cost


@compiled
def actions_of(space: Deployments) -> int:
    """How many actions there are, possible or not."""
    return int(space.successor.shape[1])


@compiled
def adding(space: Deployments, node_type: int) -> int:
    """The action that adds a replica of this type."""
    return 1 + space.speedup.size + node_type


@compiled
def removing(space: Deployments, node_type: int) -> int:
    """The action that removes a replica of this type."""
    return 1 + node_type


@compiled
def after(space: Deployments, handle: int, action: int) -> int:
    """The deployment an action leads to, or NOWHERE."""
    if space.enumerated:
        return int(space.successor[handle, action])
    if action == NOTHING:
        return handle
    types = space.speedup.size
    total = replicas_of(space, handle)
    if action > types:
        one = 1 << (space.bits * (2 * types - action))
        return handle + one if total < space.max_replicas else NOWHERE
    one = 1 << (space.bits * (types - action))
    present = count_of(space, handle, action - 1) > 0
    return handle - one if present and total > 1 else NOWHERE
