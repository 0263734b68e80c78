"""Counting and ranking, cut into buckets and micro-batches at random, against brute force."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.apps.top_routes.ranking import (
    NEVER_S,
    Board,
    BucketWindow,
    Leaders,
    NewRanking,
    Standing,
    Trip,
    cells_of,
    from_numbers,
    ranked,
)
from query1_checker import problems, read_trip, trip_line

_START = datetime(2013, 1, 1)
_PLACES = [*((150 + place, 160) for place in range(14)), (0, 5)]
_OUTSIDE = len(_PLACES) - 1


def _line(after_s: int, place: int) -> str:
    time = _START + timedelta(seconds=after_s)
    return trip_line(time - timedelta(seconds=60 + place), time, (1, 300), _PLACES[place])


def _trips(lines: Sequence[str]) -> Iterator[Trip]:
    for number, line in enumerate(lines):
        read = read_trip(line)
        if read is not None:
            pickup, dropoff = (
                int(time.replace(tzinfo=UTC).timestamp()) for time in (read.pickup, read.dropoff)
            )
            parts = ".".join(read.route).split(".") if read.route else []
            route = int("".join(part.zfill(3) for part in parts)) if parts else 0
            yield Trip(number, 0.0, pickup, dropoff, route)


def _answers(lines: Sequence[str], cuts: Iterable[int], in_buckets: int = 3) -> list[NewRanking]:
    """What the application does with micro-batches cut at these places, in plain Python."""
    trips = list(_trips(lines))
    edges = sorted({0, len(trips), *(cut for cut in cuts if cut < len(trips))})
    buckets = [BucketWindow() for _ in range(in_buckets)]
    board, changes = Board(), []
    batches = [trips[first:last] for first, last in pairwise(edges)] or [[]]
    for batch in [*batches, [Trip(len(trips), 0.0, NEVER_S, NEVER_S, 0)]]:
        updates = []
        for number, bucket in enumerate(buckets):
            own = [trip for trip in batch if trip.route and trip.route % in_buckets == number]
            kept = BucketWindow.from_bytes(bucket.closed_s, bucket.trips.tobytes())
            buckets[number], moments = kept.advanced(own, [trip.dropoff_s for trip in batch])
            updates += [Leaders(at_s, number, best) for at_s, best in moments]
        board, new = Board.from_json(board.to_json()).advanced(updates, batch)
        changes += new
    return changes


def _rows(changes: Iterable[NewRanking]) -> list[str]:
    rows = []
    for cause, routes in changes:
        times = [
            f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}" for at in (cause.pickup_s, cause.dropoff_s)
        ]
        cells = [cell for route in routes for cell in cells_of(route)]
        rows.append(",".join([*times, *cells, *["NULL"] * (20 - len(cells)), "0"]))
    return rows


# Gaps that meet the window's edge often: 0, a little, exactly 30 minutes, one second less or more.
_GAPS = st.sampled_from([0, 0, 0, 1, 2, 60, 600, 1199, 1200, 1201, 1799, 1800, 1801])
_TRIPS = st.lists(st.tuples(_GAPS, st.integers(0, len(_PLACES) - 1)), max_size=60)


def _lines(trips: Iterable[tuple[int, int]]) -> list[str]:
    after_s, lines = 0, []
    for gap_s, place in trips:
        after_s += gap_s
        lines.append(_line(after_s, place))
    return lines


@settings(max_examples=200, deadline=None)
@given(trips=_TRIPS, cuts=st.sets(st.integers(0, 60), max_size=12), in_buckets=st.sampled_from([1, 3]))
@example(trips=[(0, 0), (1800, 1)], cuts={1}, in_buckets=3)
@example(trips=[(1, place) for place in (*range(14), *range(14))], cuts={3, 7}, in_buckets=1)
# The first of the ten falls behind by losing two trips, and no route gains one.
@example(
    trips=[(1, 0), (0, 0), (1, 0), *((1, place) for place in (*range(1, 12),) * 2), (1777, _OUTSIDE)],
    cuts=set(),
    in_buckets=1,
)
def test_the_ten_are_right_at_every_time_however_the_input_is_cut(
    trips: list[tuple[int, int]], cuts: set[int], in_buckets: int
) -> None:
    lines = _lines(trips)
    assert problems(lines, _rows(_answers(lines, cuts, in_buckets))) == []


@settings(max_examples=50, deadline=None)
@given(trips=_TRIPS, cuts=st.sets(st.integers(0, 60), max_size=12))
@example(trips=[(0, 0), (1801, 1), (0, 2)], cuts={2})  # trips of one time in two micro-batches
def test_the_answer_does_not_depend_on_how_the_input_is_cut(
    trips: list[tuple[int, int]], cuts: set[int]
) -> None:
    lines = _lines(trips)
    assert _answers(lines, cuts) == _answers(lines, ())


def test_a_trip_leaves_at_exactly_thirty_minutes() -> None:
    just_before, at = (_rows(_answers([_line(0, 0), _line(gap, 1)], ())) for gap in (1799, 1800))
    first, second = (f"1.300,{_PLACES[place][0]}.160" for place in (0, 1))
    assert f"{second},{first}" in just_before[-1]
    assert first not in at[-1]
    assert second in at[-1]


def test_trips_of_the_last_time_wait_for_the_end() -> None:
    window, moments = BucketWindow().advanced([Trip(0, 0.0, 50, 100, 7)], [100])
    assert moments == []
    _, moments = window.advanced([], [NEVER_S])
    assert moments == [(100, (Standing(1, Trip(0, 0.0, 50, 100, 7)),))]


def test_a_trip_outside_the_grid_makes_time_pass() -> None:
    rows = _rows(_answers([_line(0, 0), _line(1800, _OUTSIDE)], ()))
    assert rows[-1].split(",")[1:3] == ["2013-01-01 00:30:00", "NULL"]


def test_a_trip_behind_the_others_is_left_out() -> None:
    window, _ = BucketWindow().advanced([Trip(0, 0.0, 50, 100, 7)], [100, 200])
    late, _ = window.advanced([Trip(1, 0.0, 50, 150, 7)], [200])
    assert late.trips.tolist() == window.trips.tolist() == [(0, 0.0, 50, 100, 7)]


def test_a_change_is_told_with_the_trip_whose_route_moved() -> None:
    changes = _answers([_line(0, 0), _line(5, 1), _line(5, 1), _line(5, 0)], ())
    assert [change.cause.number for change in changes] == [0, 2]  # the last trip left its route where it was


def test_among_equals_the_route_driven_last_is_first() -> None:
    older, newer = (Standing(2, Trip(number, 0.0, 0, 9, number)) for number in (1, 2))
    assert ranked([older, newer]) == (newer, older)


def test_no_trips_no_rows() -> None:
    assert _answers([], ()) == []


def test_standings_survive_their_journey() -> None:
    standing = Standing(3, Trip(4, 1.25, 5, 6, 156160157161))
    assert from_numbers([3, 4, 1.25, 5, 6, 156160157161]) == standing
    assert cells_of(standing.latest.route) == ("156.160", "157.161")


def test_the_checker_notices_a_wrong_list() -> None:
    lines = [_line(0, 0), _line(1, 0), _line(2, 1)]
    right = _rows(_answers(lines, ()))
    assert problems(lines, right) == []
    assert problems(lines, right[:-1]) != []
    assert problems(lines, [row.replace("150.160", "151.160") for row in right]) != []
