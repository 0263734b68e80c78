"""Value tables: dense and hashed, and growing."""

import numpy as np
import pytest

from penstock.policy.rl import tables
from penstock.policy.rl.tables import (
    ValueTable,
    row_to_read,
    row_to_write,
    value_at,
    value_table,
    with_room,
)


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> ValueTable:
    monkeypatch.setattr(tables, "LARGEST_DENSE_BYTES", 0)
    return value_table(keys=2**62, width=2, writes=1)


def fill(table: ValueTable, keys: list[int]) -> None:
    """The n-th key gets n and -n."""
    for position, key in enumerate(keys):
        table.values[row_to_write(table, key)] = [position, -position]


def test_a_table_is_dense_as_long_as_it_fits() -> None:
    fits = tables.LARGEST_DENSE_BYTES // 8 // 64
    assert value_table(keys=fits, width=64, writes=1).keys.size == 0
    assert value_table(keys=fits + 1, width=64, writes=1).keys.size > 0


def test_a_hashed_table_is_at_most_half_full_when_all_expected_writes_are_made() -> None:
    for writes in (1, 511, 512, 513, 100_000):
        capacity = value_table(keys=2**62, width=1, writes=writes).keys.size
        assert capacity >= 2 * writes
        assert capacity & (capacity - 1) == 0  # the mask of a hash needs a power of two


def test_what_was_never_written_is_0_and_takes_no_room(hashed: ValueTable) -> None:
    fill(hashed, [5])
    assert row_to_read(hashed, 6) == -1
    assert value_at(hashed, row_to_read(hashed, 6), 1) == 0.0
    assert hashed.used[0] == 1


def test_a_table_half_full_is_kept_as_it_is(hashed: ValueTable) -> None:
    keys = [int(key) for key in np.random.default_rng(1).integers(0, 2**61, hashed.keys.size // 2)]
    fill(hashed, keys)
    assert with_room(hashed) is hashed


def test_a_larger_table_keeps_every_value(hashed: ValueTable) -> None:
    keys = [int(key) for key in np.random.default_rng(1).integers(0, 2**61, hashed.keys.size // 2 + 1)]
    fill(hashed, keys)
    larger = with_room(hashed)
    assert larger.keys.size == 2 * hashed.keys.size
    assert larger.used[0] == hashed.used[0] == len(keys)
    for position, key in enumerate(keys):
        row = row_to_read(larger, key)
        assert (value_at(larger, row, 0), value_at(larger, row, 1)) == (position, -position)
    assert row_to_read(larger, 7) == -1
