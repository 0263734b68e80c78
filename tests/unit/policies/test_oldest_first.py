"""Resizing a fleet: more of one type, or without the oldest."""

import pytest
from policy_cases import at, node_types, space_of

from penstock.policy.operator.oldest_first import Fleet, acknowledge, no_fleet, resize

MOST = 5
SPACE = space_of(node_types((1.0, 2.0, 3.0)), MOST)


def ages(fleet: Fleet) -> list[int]:
    """Node types, oldest first."""
    return [int(node_type) for node_type in fleet.types[: fleet.size[0]]]


def resized(fleet: Fleet, here: int, wanted: int, node_type: int) -> int:
    """A request that is granted and seen."""
    here = resize(fleet, here, wanted, node_type)
    acknowledge(fleet, here)
    return here


def test_the_oldest_go_first_whatever_their_type() -> None:
    fleet = no_fleet(SPACE)
    here = at(SPACE, 0, 1, 0)
    acknowledge(fleet, here)
    here = resized(fleet, here, 2, 2)
    here = resized(fleet, here, 4, 0)
    assert (here, ages(fleet)) == (at(SPACE, 2, 1, 1), [1, 2, 0, 0])
    here = resized(fleet, here, 3, 0)
    assert (here, ages(fleet)) == (at(SPACE, 2, 0, 1), [2, 0, 0])
    here = resized(fleet, here, 1, 0)
    assert (here, ages(fleet)) == (at(SPACE, 1, 0, 0), [0])


@pytest.mark.parametrize(("wanted", "total"), [(0, 1), (-3, 1), (MOST + 4, MOST)])
def test_a_size_out_of_bounds_becomes_the_nearest_possible(wanted: int, total: int) -> None:
    fleet = no_fleet(SPACE)
    here = at(SPACE, 1, 1, 0)
    acknowledge(fleet, here)
    resized(fleet, here, wanted, 2)
    assert len(ages(fleet)) == total


def test_what_is_as_remembered_keeps_its_ages() -> None:
    fleet = no_fleet(SPACE)
    here = at(SPACE, 0, 0, 1)
    acknowledge(fleet, here)
    here = resize(fleet, here, 2, 0)
    acknowledge(fleet, here)
    assert ages(fleet) == [2, 0]


def test_replicas_that_someone_else_adds_are_the_youngest() -> None:
    fleet = no_fleet(SPACE)
    acknowledge(fleet, at(SPACE, 0, 0, 2))
    acknowledge(fleet, at(SPACE, 1, 0, 2))
    assert ages(fleet) == [2, 2, 0]


def test_an_exchange_by_someone_else_fits_in_a_full_fleet() -> None:
    fleet = no_fleet(SPACE)
    acknowledge(fleet, at(SPACE, 0, 0, MOST))
    acknowledge(fleet, at(SPACE, 2, 0, MOST - 2))
    assert ages(fleet) == [2] * (MOST - 2) + [0, 0]


def test_a_refused_request_does_not_make_replicas_forget_their_age() -> None:
    fleet = no_fleet(SPACE)
    here = at(SPACE, 0, 0, 1)
    acknowledge(fleet, here)
    here = resize(fleet, here, 2, 0)
    acknowledge(fleet, here)
    resize(fleet, here, 4, 0)  # asked for, not granted
    acknowledge(fleet, here)
    assert ages(fleet) == [2, 0]
