"""What is sent when, by whom, and that a restart loses and repeats nothing."""

import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from penstock.apps.feeding.load import Load
from penstock.apps.feeding.replayer import Replayer
from penstock.apps.feeding.schedule import ByRates, ByTimes, Shape
from penstock.apps.paced.ids import Ids
from penstock.apps.top_routes.query import END_LINE
from penstock.apps.top_routes.trip_lines import GeneratedTrips, RecordedTrips
from penstock.domain.errors import InputError
from penstock.domain.trace import Trace
from penstock.runtimes.spark.feed import Feed
from penstock.runtimes.spark.stream_log import StreamLog
from query1_checker import CheckedTrip, read_trip, trip_line

_START = datetime(2013, 1, 1)


def _lines(count: int) -> list[str]:
    return [
        trip_line(_START, _START + timedelta(seconds=10 * number), (100, 100), (100 + number % 40, 100))
        for number in range(count)
    ]


def _read(lines: list[str]) -> list[CheckedTrip]:
    return [trip for line in lines if (trip := read_trip(line)) is not None]


def test_rates_are_followed_slot_by_slot() -> None:
    schedule = ByRates(Trace("t", np.array([10.0, 0.0, 4.0])), slot_s=2.0)
    assert [schedule.due(at) for at in (0, 1, 2, 3, 4, 5, 6, 99)] == [0, 10, 20, 20, 20, 24, 28, 28]
    assert schedule.total == 28


@given(
    rates=st.lists(st.floats(0, 50), min_size=1, max_size=8),
    slot_s=st.floats(0.1, 30),
    position=st.integers(0, 2000),
)
def test_a_tuple_is_due_at_its_moment_and_not_before(
    rates: list[float], slot_s: float, position: int
) -> None:
    schedule = ByRates(Trace("t", np.array(rates)), slot_s=slot_s)
    moment = schedule.moment(position)
    if position < schedule.total:
        assert schedule.due(moment + 1e-4) > position
        assert schedule.due(moment * (1 - 1e-4) - 1e-4) <= position
    else:
        assert moment == pytest.approx(len(rates) * slot_s)


def test_recorded_times_are_divided_by_the_acceleration() -> None:
    schedule = ByTimes(np.array([1000.0, 1060.0, 1060.0, 1600.0]), acceleration=60)
    assert [schedule.due(at) for at in (0, 0.99, 1, 9.9, 10)] == [1, 1, 3, 3, 4]
    assert [schedule.moment(position) for position in range(4)] == [0, 1, 1, 10]
    assert ByTimes(np.array([]), acceleration=1).due(5) == 0


def test_load_shapes() -> None:
    assert Shape(3).constant(5).rates.tolist() == [5, 5, 5]
    assert Shape(5).step(10, 20, begin=1, end=3).rates.tolist() == [10, 20, 20, 10, 10]
    ramp = Shape(20).ramp(10, 40).rates.tolist()
    assert ramp == [10] * 5 + [20, 30] + [40] * 5 + [30, 20] + [10] * 6
    assert Shape(5).sine(10, 30, period=4).rates.tolist() == pytest.approx([10, 20, 30, 20, 10])


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: Shape(0),
        lambda: Shape(3).step(1, 2, begin=2, end=4),
        lambda: Shape(3).sine(1, 2, period=0),
        lambda: ByTimes(np.array([0.0]), acceleration=0),
        lambda: ByRates(Shape(1).constant(1), slot_s=0),
        lambda: RecordedTrips([], amplification=0),
        lambda: GeneratedTrips(ByTimes(np.array([])), acceleration=-1),
    ],
)
def test_impossible_loads_are_refused(mistake: object) -> None:
    assert callable(mistake)
    with pytest.raises(InputError):
        mistake()


def test_a_made_up_load_of_more_than_a_hundred_days_is_refused_before_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give at most 100 days, or follow a trace"):
        Load(seconds=6e19).trace()
    (tmp_path / "rates.txt").write_text("10\n20\n")
    assert Load(seconds=6e19, rates=tmp_path / "rates.txt").trace().rates.tolist() == [10, 20]


def test_surrogates_keep_the_times_and_the_routes_of_the_recording() -> None:
    lines = _lines(2000)
    trips = RecordedTrips(lines, amplification=5, seed=1)
    assert trips.total == 10_000
    read = _read([trips.line(number) for number in range(10_000)])
    originals = _read(lines)
    assert read[::5] == originals
    assert [trip.dropoff for trip in read] == [trip.dropoff for trip in originals for _ in range(5)]
    shares = Counter(trip.route for trip in read)
    for route, count in Counter(trip.route for trip in originals).items():
        assert shares[route] / 10_000 == pytest.approx(count / 2000, rel=0.3)
    copies = [trip.route == read[place - place % 5].route for place, trip in enumerate(read) if place % 5]
    assert np.mean(copies) < 0.1  # a surrogate has a route of its own


def test_a_line_is_the_same_whoever_asks_and_in_any_order() -> None:
    schedule = ByRates(Shape(10).constant(50), slot_s=1)
    for one, other in (
        (
            RecordedTrips(_lines(50), amplification=3, seed=2),
            RecordedTrips(_lines(50), amplification=3, seed=2),
        ),
        (GeneratedTrips(schedule, seed=2), GeneratedTrips(schedule, seed=2)),
    ):
        assert [one.line(number) for number in range(150)] == [other.line(n) for n in range(149, -1, -1)][
            ::-1
        ]


def test_generated_trips_are_sorted_inside_the_grid_and_follow_the_schedule() -> None:
    trips = GeneratedTrips(ByRates(Shape(10).constant(50), slot_s=1), acceleration=60, seed=4)
    read = [read_trip(trips.line(number)) for number in range(500)]
    assert all(trip is not None and trip.route is not None for trip in read)
    times = [trip.dropoff for trip in read if trip]
    assert times == sorted(times)
    assert times[-1] - _START == timedelta(seconds=600)
    most = Counter(trip.route for trip in read if trip).most_common(2)
    assert most[0][1] > 1.5 * most[1][1]


def test_a_file_that_is_not_sorted_is_refused_with_its_line(tmp_path: Path) -> None:
    lines = _lines(4)
    path = tmp_path / "trips.csv"
    path.write_text("\n".join([lines[0], "no trip", lines[2], lines[1]]))
    with pytest.raises(InputError, match=r"trips\.csv: line 4.*sort the file"):
        RecordedTrips.read(path)
    with pytest.raises(InputError, match="cannot read"):
        RecordedTrips.read(tmp_path / "none.csv")


def test_lines_that_are_no_trips_are_sent_with_their_neighbours() -> None:
    trips = RecordedTrips(["header", *_lines(2), ""])
    assert np.diff(trips.times_s).tolist() == [0, 10, 0]


def _sent(log: StreamLog, column: str) -> list[object]:
    files = [file for batch in log.batches(0, log.end()) for file in batch.files]
    return [
        value
        for file in files
        for value in parquet.read_table(log.data_file(file.name)).column(column).to_pylist()
    ]


def test_a_replay_sends_everything_in_order_and_then_the_end(tmp_path: Path) -> None:
    log = StreamLog(tmp_path).create()
    lines = _lines(100)
    trips = RecordedTrips(lines)
    replayer = Replayer(Feed(log), trips, ByTimes(trips.times_s, acceleration=10_000), every_s=0.01)
    replayer.start()
    replayer.join(20)
    assert replayer.failure is None
    assert _sent(log, "line") == [*lines, END_LINE]
    assert _sent(log, "number") == list(range(101))
    last = log.last()
    assert last is not None
    assert last.final


def test_a_restarted_replay_goes_on_where_it_was(tmp_path: Path) -> None:
    log = StreamLog(tmp_path).create()
    schedule = ByRates(Shape(2).constant(400), slot_s=0.5)
    first = Replayer(Feed(log), Ids(), schedule, every_s=0.01)
    first.start()
    deadline = time.monotonic() + 20
    while len(_sent(log, "id")) < 50 and time.monotonic() < deadline:
        time.sleep(0.01)
    first.stop()
    before = len(_sent(log, "id"))
    assert not Feed(log).ended
    second = Replayer(Feed(log), Ids(), schedule, every_s=0.01)
    second.start()
    second.join(20)
    assert _sent(log, "id") == list(range(400))
    assert 50 <= before <= 400
    third = Replayer(Feed(log), Ids(), schedule)
    third.start()
    third.join(20)
    assert _sent(log, "id") == list(range(400))


def test_time_that_passed_while_nobody_replayed_is_not_made_up_for_nor_waited_for(tmp_path: Path) -> None:
    log = StreamLog(tmp_path).create()
    schedule = ByRates(Shape(100).constant(10), slot_s=1)
    Feed(log).append(Ids().table(0, 500, entered_s=0.0), entered_at_s=0.0)  # half of it, 50 s
    replayer = Replayer(Feed(log), Ids(), schedule, every_s=0.01)
    replayer.start()
    time.sleep(1)
    replayer.stop()
    assert 500 < len(_sent(log, "id")) < 600


def test_response_times_count_from_when_tuples_were_due_not_from_when_a_late_sender_sent_them(
    tmp_path: Path,
) -> None:
    log = StreamLog(tmp_path).create()
    schedule = ByRates(Shape(10).constant(100), slot_s=0.1)  # 100 tuples, one every 10 ms
    began_s = time.time()
    replayer = Replayer(Feed(log), Ids(), schedule, every_s=0.5)
    replayer.start()
    replayer.join(20)
    batches = [batch for batch in log.batches(0, log.end(0)) if batch.tuples]
    for batch in batches:
        assert sum(tuples for _, tuples in batch.origins) == batch.tuples
        due = [at_s for at_s, _ in batch.origins]
        assert due == sorted(due)
        assert due[-1] <= batch.published_at_s
    late = [batch.published_at_s - batch.origins[0][0] for batch in batches]
    assert max(late) > 0.3  # half a second's worth was sent at once
    assert abs(batches[0].origins[0][0] - began_s) < 0.3


def test_a_replay_can_be_finished_early(tmp_path: Path) -> None:
    log = StreamLog(tmp_path).create()
    replayer = Replayer(Feed(log), Ids(), ByRates(Shape(100).constant(100), slot_s=10), every_s=0.01)
    replayer.start()
    replayer.finish()
    assert Feed(log).ended
    assert len(_sent(log, "id")) < 100_000


def test_an_empty_recording_is_only_its_end(tmp_path: Path) -> None:
    log = StreamLog(tmp_path).create()
    trips = RecordedTrips([])
    replayer = Replayer(Feed(log), trips, ByTimes(trips.times_s))
    replayer.start()
    replayer.join(20)
    assert _sent(log, "line") == [END_LINE]
    assert Feed(log).ended


def test_a_replay_that_cannot_go_on_says_why(tmp_path: Path) -> None:
    feed = Feed(StreamLog(tmp_path).create())
    (tmp_path / "data").rmdir()
    replayer = Replayer(feed, Ids(), ByRates(Shape(1).constant(1000), slot_s=1), every_s=0.01)
    replayer.start()
    replayer.join(20)
    assert isinstance(replayer.failure, OSError)
