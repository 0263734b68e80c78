"""Replicas as values."""

from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError


@pytest.mark.parametrize("counts", [(-1, 2), (3, -1), (0, -1)])
def test_a_negative_count_is_refused_with_all_counts(counts: tuple[int, ...]) -> None:
    with pytest.raises(InputError) as caught:
        Replicas(counts)
    assert str(caught.value) == f"replicas {counts}: a count cannot be negative"


@pytest.mark.parametrize("counts", [(), (0,), (0, 0, 0)])
def test_running_nothing_is_refused(counts: tuple[int, ...]) -> None:
    with pytest.raises(InputError) as caught:
        Replicas(counts)
    assert str(caught.value) == f"replicas {counts}: at least one replica must run"


def test_the_total_counts_every_type() -> None:
    assert Replicas((2, 0, 1)).total == 3


def test_a_change_touches_one_type_and_leaves_the_original() -> None:
    # Russo 2023, figure 6: from [2, 0, 1] remove a large one, or add a medium one
    now = Replicas((2, 0, 1))
    assert now.changed(2, -1) == Replicas((2, 0, 0))
    assert now.changed(1, +1) == Replicas((2, 1, 1))
    assert now == Replicas((2, 0, 1))


@pytest.mark.parametrize(("counts", "node_type"), [((1, 0), 0), ((2, 0), 1)])
def test_removing_the_last_replica_or_one_that_is_not_there_is_refused(
    counts: tuple[int, ...], node_type: int
) -> None:
    with pytest.raises(InputError):
        Replicas(counts).changed(node_type, -1)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=10).filter(any), st.data())
def test_adding_and_removing_one_is_no_change(counts: list[int], data: st.DataObject) -> None:
    node_type = data.draw(st.integers(0, len(counts) - 1))
    now = Replicas(tuple(counts))
    more = now.changed(node_type, +1)
    assert more.total == now.total + 1
    assert more.changed(node_type, -1) == now


def test_replicas_cannot_be_written_to() -> None:
    field = "counts"  # by name: the type checker would refuse the assignment
    with pytest.raises(FrozenInstanceError):
        setattr(Replicas((1,)), field, (2,))
