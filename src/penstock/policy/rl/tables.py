"""Value tables: dense where they fit, hashed where they do not, used the same way."""

from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints, compiled

LARGEST_DENSE_BYTES = 256 * 2**20
FREE = -1


class ValueTable(NamedTuple):
    """Rows of values by integer key; every value is 0 until written."""

    values: Floats  # row x width
    keys: Ints  # key of each row, open addressing; empty: the key is the row
    used: Ints  # [rows in use]


def value_table(*, keys: int, width: int, writes: int) -> ValueTable:
    """A table for `keys` different keys, of which at most `writes` will ever be written."""
    if keys * width * 8 <= LARGEST_DENSE_BYTES:
        return ValueTable(np.zeros((keys, width)), np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64))
    return _hashed(capacity=1 << max(10, (2 * writes - 1).bit_length()), width=width)


def _hashed(*, capacity: int, width: int) -> ValueTable:
    return ValueTable(
        np.zeros((capacity, width)), np.full(capacity, FREE, dtype=np.int64), np.zeros(1, dtype=np.int64)
    )


def with_room(table: ValueTable) -> ValueTable:
    """The table itself, or a larger copy when it is more than half full."""
    if table.keys.size == 0 or 2 * int(table.used[0]) <= table.keys.size:
        return table
    larger = _hashed(capacity=2 * table.keys.size, width=table.values.shape[1])
    _move(table, larger)
    return larger


@compiled
def _move(table: ValueTable, larger: ValueTable) -> None:
    for row in range(table.keys.size):
        if table.keys[row] != FREE:
            place = row_to_write(larger, table.keys[row])
            for column in range(table.values.shape[1]):
                larger.values[place, column] = table.values[row, column]


@compiled
def _slot(table: ValueTable, key: int) -> int:
    """Where the key is, or the free row where it would go."""
    mask = table.keys.size - 1
    # Fibonacci hashing: neighbouring keys (levels of one deployment) spread over the table.
    row = ((key * 0x1E3779B97F4A7C15) >> 20) & mask
    while table.keys[row] != key and table.keys[row] != FREE:
        row = (row + 1) & mask
    return row


@compiled
def row_to_read(table: ValueTable, key: int) -> int:
    """The row of a key, or -1 when it was never written: all its values are 0."""
    if table.keys.size == 0:
        return key
    row = _slot(table, key)
    return row if table.keys[row] == key else -1


@compiled
def row_to_write(table: ValueTable, key: int) -> int:
    """The row of a key, taken for it if need be."""
    if table.keys.size == 0:
        return key
    row = _slot(table, key)
    if table.keys[row] == FREE:
        table.keys[row] = key
        table.used[0] += 1
    return row


@compiled
def value_at(table: ValueTable, row: int, column: int) -> float:
    """A value, 0 for a row never written."""
    return table.values[row, column] if row >= 0 else 0.0
