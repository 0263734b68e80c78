"""Work is cut so that replicas share it."""

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.runtimes.spark.partitions import MOST_PARTITIONS, imbalance, shares, state_partitions


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(1, 9))
def test_every_tuple_is_in_one_part_and_parts_differ_by_one_at_most(sizes: list[int], parts: int) -> None:
    cut = shares(list(enumerate(sizes)), parts)
    tuples = [
        (file, place) for part in cut for file, first, count in part for place in range(first, first + count)
    ]
    assert sorted(tuples) == [(file, place) for file, size in enumerate(sizes) for place in range(size)]
    loads = [sum(count for _, _, count in part) for part in cut]
    if sum(sizes):
        assert max(loads) - min(loads) <= 1
        assert len(loads) == min(parts, sum(sizes))


@pytest.mark.parametrize(("most", "expected"), [(1, 1), (2, 2), (3, 6), (4, 12)])
def test_few_replicas_divide_their_state_exactly(most: int, expected: int) -> None:
    assert state_partitions(most) == expected  # the least common multiple of 1 to `most`


@given(st.integers(1, MOST_PARTITIONS))
def test_no_other_number_of_partitions_is_better_at_its_worst(most: int) -> None:
    def worst(partitions: int) -> float:
        return max(ceil(partitions / r) * r / partitions for r in range(1, most + 1))

    chosen = state_partitions(most)
    assert all(worst(chosen) <= worst(n) + 1e-6 for n in range(most, MOST_PARTITIONS + 1))


def test_imbalance_is_the_busiest_over_the_mean() -> None:
    assert imbalance(4, 3) == pytest.approx(2 / (4 / 3))
