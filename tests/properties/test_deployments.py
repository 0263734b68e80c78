"""Deployments as handles against plain counts: enumerated and packed must both agree with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.perf.deployments import (
    NOTHING,
    NOWHERE,
    Deployments,
    actions_of,
    adding,
    after,
    cost_of,
    count_of,
    counts_at,
    deployments,
    handle_of,
    removing,
    replicas_at,
    replicas_of,
    slowest_of,
    speed_of,
    with_types,
)

Counts = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """Some node types, a bound, and one deployment within it."""

    speedups: tuple[float, ...]
    prices: tuple[float, ...]
    max_replicas: int
    counts: Counts

    def space(self, *, enumerated: bool) -> Deployments:
        types = node_types(self.speedups, self.prices)
        if enumerated:
            return deployments(types, self.max_replicas)
        return deployments(types, self.max_replicas, enumerate_up_to=0)

    def both(self) -> tuple[Deployments, Deployments]:
        enumerated, packed = self.space(enumerated=True), self.space(enumerated=False)
        assert enumerated.enumerated
        assert not packed.enumerated
        return enumerated, packed


def node_types(speedups: Sequence[float], prices: Sequence[float]) -> list[NodeType]:
    return [
        NodeType(name=f"t{i}", speedup=speedup, price=price)
        for i, (speedup, price) in enumerate(zip(speedups, prices, strict=True))
    ]


@st.composite
def cases(draw: st.DrawFn, *, types: tuple[int, int] = (1, 5), replicas: tuple[int, int] = (1, 9)) -> Case:
    n = draw(st.integers(*types))
    most = draw(st.integers(replicas[0], min(replicas[1], (1 << 62 // n) - 1)))  # what 62 bits can name
    used = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=most))  # the type of each replica
    return Case(
        speedups=tuple(draw(st.lists(st.floats(0.05, 30), min_size=n, max_size=n))),
        prices=tuple(draw(st.lists(st.floats(0, 100), min_size=n, max_size=n))),
        max_replicas=most,
        counts=tuple(used.count(node_type) for node_type in range(n)),
    )


def by_hand(counts: Counts, action: int, max_replicas: int) -> Counts | None:
    """Russo 2023, eq. 1: nothing; one less of type 0, 1, ...; one more of type 0, 1, ..."""
    changes = [(0, 0), *((-1, t) for t in range(len(counts))), *((+1, t) for t in range(len(counts)))]
    delta, node_type = changes[action]
    changed = list(counts)
    changed[node_type] += delta
    possible = min(changed) >= 0 and 1 <= sum(changed) <= max_replicas
    return tuple(changed) if possible else None


def check_all_actions(space: Deployments, case: Case) -> None:
    here = handle_of(space, Replicas(case.counts))
    assert actions_of(space) == 2 * len(case.counts) + 1
    for action in range(actions_of(space)):
        expected = by_hand(case.counts, action, case.max_replicas)
        there = after(space, here, action)
        if expected is None:
            assert there == NOWHERE
        else:
            assert replicas_at(space, there).counts == expected
            assert there == handle_of(space, Replicas(expected))


# --- which deployments there are ---------------------------------------------------------


@pytest.mark.parametrize("max_replicas", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("types", [1, 2, 3, 4])
def test_the_enumeration_is_every_deployment_once(types: int, max_replicas: int) -> None:
    space = deployments(node_types([1.0] * types, [1.0] * types), max_replicas)
    found = [tuple(row) for row in counts_at(space, np.arange(space.packed.size)).tolist()]
    ranges = [range(max_replicas + 1)] * types
    expected = {counts for counts in product(*ranges) if 1 <= sum(counts) <= max_replicas}
    assert set(found) == expected
    assert len(found) == len(expected) == comb(types + max_replicas, types) - 1


@settings(deadline=None)
@given(st.integers(1, 8), st.integers(1, 10))
def test_there_are_n_plus_k_over_n_deployments_less_the_empty_one(types: int, max_replicas: int) -> None:
    space = deployments(node_types([1.0] * types, [1.0] * types), max_replicas)
    expected = comb(types + max_replicas, types) - 1
    assert space.enumerated
    assert space.packed.size == expected
    assert space.successor.shape == (expected, 2 * types + 1)
    for per_row in (space.replicas, space.slowest, space.speed, space.cost):
        assert per_row.shape == (expected,)


def test_ten_types_and_twenty_replicas_are_named_without_being_listed() -> None:
    assert comb(30, 10) - 1 == 30_045_014
    space = deployments(node_types([1.0] * 10, [1.0] * 10), 20)
    assert not space.enumerated
    assert space.packed.size == space.successor.size == space.cost.size == 0


@pytest.mark.parametrize(("room", "enumerated"), [(19, True), (18, False)])
def test_the_enumeration_is_used_as_long_as_it_fits(room: int, enumerated: bool) -> None:
    # 3 types and 3 replicas: C(6, 3) - 1 = 19
    assert deployments(node_types([1.0] * 3, [1.0] * 3), 3, enumerate_up_to=room).enumerated is enumerated


@pytest.mark.parametrize("max_replicas", [0, -1])
def test_a_bound_below_one_replica_is_refused(max_replicas: int) -> None:
    with pytest.raises(InputError, match=f"max_replicas={max_replicas}; at least one replica must run"):
        deployments(node_types([1.0], [1.0]), max_replicas)


def test_more_deployments_than_an_integer_can_name_are_refused() -> None:
    deployments(node_types([1.0] * 31, [1.0] * 31), 3)  # 31 types of 2 bits are 62
    with pytest.raises(InputError, match="32 node types with 3 replicas: too many deployments to number"):
        deployments(node_types([1.0] * 32, [1.0] * 32), 3)
    with pytest.raises(InputError, match="31 node types with 4 replicas: too many deployments to number"):
        deployments(node_types([1.0] * 31, [1.0] * 31), 4)


# --- handles -----------------------------------------------------------------------------


@settings(deadline=None)
@given(cases())
def test_a_handle_leads_back_to_its_replicas(case: Case) -> None:
    for space in case.both():
        handle = handle_of(space, Replicas(case.counts))
        assert replicas_at(space, handle) == Replicas(case.counts)
        assert counts_at(space, np.array([handle, handle])).tolist() == [list(case.counts)] * 2
        assert tuple(count_of(space, handle, t) for t in range(len(case.counts))) == case.counts


@pytest.mark.parametrize(("types", "max_replicas"), [(1, 5), (3, 4), (4, 7)])
def test_every_row_of_the_enumeration_is_the_handle_of_its_own_replicas(
    types: int, max_replicas: int
) -> None:
    space = deployments(node_types([1.0] * types, [1.0] * types), max_replicas)
    rows = range(space.packed.size)
    assert [handle_of(space, replicas_at(space, row)) for row in rows] == list(rows)


@settings(deadline=None)
@given(cases())
def test_one_replica_beyond_the_bound_has_no_handle(case: Case) -> None:
    full = list(case.counts)
    full[0] += case.max_replicas - sum(full)
    beyond = Replicas((full[0] + 1, *full[1:]))
    for space in case.both():
        handle_of(space, Replicas(tuple(full)))
        with pytest.raises(InputError) as caught:
            handle_of(space, beyond)
        message = f"replicas {beyond.counts}: more than max_replicas={case.max_replicas}"
        assert str(caught.value) == message


@pytest.mark.parametrize("counts", [(1,), (1, 0, 1)])
def test_replicas_of_other_node_types_have_no_handle(counts: Counts) -> None:
    for enumerate_up_to in (0, 100):
        space = deployments(node_types([1.0, 2.0], [1.0, 2.0]), 3, enumerate_up_to=enumerate_up_to)
        with pytest.raises(InputError) as caught:
            handle_of(space, Replicas(counts))
        assert str(caught.value) == f"replicas {counts}: 2 node types are known"


# --- actions -----------------------------------------------------------------------------


@settings(deadline=None)
@given(cases())
def test_an_action_leads_where_changing_the_counts_by_hand_does(case: Case) -> None:
    for space in case.both():
        check_all_actions(space, case)


@settings(deadline=None)
@given(cases(types=(1, 31), replicas=(1, 40)))
@example(Case(speedups=(1.0,) * 31, prices=(1.0,) * 31, max_replicas=3, counts=(2, *(0,) * 29, 1)))
@example(Case(speedups=(1.0,) * 10, prices=(1.0,) * 10, max_replicas=20, counts=(11, *(1,) * 9)))
def test_in_a_space_too_large_to_list_actions_still_lead_where_they_should(case: Case) -> None:
    space = case.space(enumerated=False)
    assert replicas_at(space, handle_of(space, Replicas(case.counts))).counts == case.counts
    check_all_actions(space, case)


@pytest.mark.parametrize(("types", "max_replicas"), [(1, 1), (1, 4), (2, 3), (3, 4)])
def test_every_action_from_every_deployment_is_right(types: int, max_replicas: int) -> None:
    listed = deployments(node_types([1.0] * types, [1.0] * types), max_replicas)
    packed = deployments(node_types([1.0] * types, [1.0] * types), max_replicas, enumerate_up_to=0)
    for row in range(listed.packed.size):
        case = Case((1.0,) * types, (1.0,) * types, max_replicas, replicas_at(listed, row).counts)
        check_all_actions(listed, case)
        check_all_actions(packed, case)


def test_actions_come_as_nothing_then_removals_then_additions_by_type() -> None:
    # Russo 2023, figure 6: two small and one large VM, here with room for one more
    small, medium, large = 0, 1, 2
    for enumerate_up_to in (0, 1000):
        space = deployments(node_types([1.0, 2.0, 4.0], [1.0, 2.0, 4.0]), 4, enumerate_up_to=enumerate_up_to)
        here = handle_of(space, Replicas((2, 0, 1)))
        reached = [after(space, here, action) for action in range(7)]
        assert [None if h == NOWHERE else replicas_at(space, h).counts for h in reached] == [
            (2, 0, 1),  # nothing
            (1, 0, 1),  # one small less
            None,  # there is no medium one to remove
            (2, 0, 0),
            (3, 0, 1),  # one small more
            (2, 1, 1),
            (2, 0, 2),
        ]
        assert NOTHING == 0
        assert [removing(space, t) for t in (small, medium, large)] == [1, 2, 3]
        assert [adding(space, t) for t in (small, medium, large)] == [4, 5, 6]


@settings(deadline=None)
@given(cases())
def test_at_one_replica_nothing_can_be_removed_and_at_the_bound_nothing_added(case: Case) -> None:
    # Russo 2023, eq. 1: Delta(s) = {+1} where parallelism is 1, {-1} where it is K_max
    types = range(len(case.counts))
    one = Replicas(tuple(int(t == 0) for t in types))
    full = Replicas((case.counts[0] + case.max_replicas - sum(case.counts), *case.counts[1:]))
    for space in case.both():
        assert all(after(space, handle_of(space, one), removing(space, t)) == NOWHERE for t in types)
        assert all(after(space, handle_of(space, full), adding(space, t)) == NOWHERE for t in types)


@settings(deadline=None)
@given(cases(), st.lists(st.integers(0, 10), max_size=40))
def test_walking_both_spaces_by_the_same_actions_stays_in_step_and_within_bounds(
    case: Case, actions: list[int]
) -> None:
    listed, packed = case.both()
    a, b = handle_of(listed, Replicas(case.counts)), handle_of(packed, Replicas(case.counts))
    for action in actions:
        next_a, next_b = (after(s, h, action % actions_of(s)) for s, h in ((listed, a), (packed, b)))
        assert (next_a == NOWHERE) == (next_b == NOWHERE)
        if next_a != NOWHERE:
            a, b = next_a, next_b
        assert replicas_at(listed, a) == replicas_at(packed, b)
        assert 1 <= replicas_of(packed, b) <= case.max_replicas


# --- what a deployment amounts to --------------------------------------------------------


def check_amounts(space: Deployments, case: Case) -> None:
    handle = handle_of(space, Replicas(case.counts))
    per_type = list(zip(case.counts, case.speedups, case.prices, strict=True))
    assert replicas_of(space, handle) == sum(case.counts)
    assert slowest_of(space, handle) == min(speedup for count, speedup, _ in per_type if count)
    speed = sum(count * speedup for count, speedup, _ in per_type)
    cost = sum(count * price for count, _, price in per_type)
    assert speed_of(space, handle) == pytest.approx(speed, rel=1e-12)
    assert cost_of(space, handle) == pytest.approx(cost, rel=1e-12)


@settings(deadline=None)
@given(cases())
def test_replicas_speed_cost_and_slowest_are_sums_and_the_minimum_over_replicas(case: Case) -> None:
    for space in case.both():
        check_amounts(space, case)


@settings(deadline=None)
@given(cases(types=(6, 31), replicas=(1, 40)))
def test_they_are_in_a_space_too_large_to_list_as_well(case: Case) -> None:
    check_amounts(case.space(enumerated=False), case)


@settings(deadline=None)
@given(cases(), st.data())
def test_other_speeds_and_prices_keep_every_handle_and_change_what_it_amounts_to(
    case: Case, data: st.DataObject
) -> None:
    n = len(case.counts)
    other = Case(
        speedups=tuple(data.draw(st.lists(st.floats(0.05, 30), min_size=n, max_size=n))),
        prices=tuple(data.draw(st.lists(st.floats(0, 100), min_size=n, max_size=n))),
        max_replicas=case.max_replicas,
        counts=case.counts,
    )
    for before in case.both():
        handle = handle_of(before, Replicas(case.counts))
        changed = with_types(before, speedup=np.array(other.speedups), price=np.array(other.prices))
        assert handle_of(changed, Replicas(case.counts)) == handle
        assert replicas_at(changed, handle).counts == case.counts
        assert np.array_equal(changed.packed, before.packed)
        for action in range(actions_of(before)):
            assert after(changed, handle, action) == after(before, handle, action)
        check_amounts(changed, other)
        check_amounts(before, case)  # the original still answers as it did
