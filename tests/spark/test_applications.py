"""Applications on Spark itself, on a local master: nothing lost, nothing twice, the right answers."""

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from penstock.apps.algo_trader import query as trading
from penstock.apps.algo_trader.quote_feed import RecordedQuotes
from penstock.apps.algo_trader.trading import Trader
from penstock.apps.paced.form import paced
from penstock.apps.paced.ids import Ids
from penstock.apps.registry import application_entry
from penstock.apps.top_routes.query import (
    BUCKETS,
    END_LINE,
    RESULTS,
    SOURCE,
    SOURCE_SCHEMA,
    TRIP,
    challenge_rows,
    compute_route_id,
    export,
    filter_by_coordinates,
    metronome,
    parser,
    top_routes,
)
from penstock.apps.top_routes.ranking import NEVER_S, cells_of
from penstock.apps.top_routes.trip_lines import RecordedTrips
from penstock.domain.objective import Objective
from penstock.runtimes.spark.feed import Feed
from penstock.runtimes.spark.log_source import LogSource
from penstock.runtimes.spark.running import RunningApp
from penstock.runtimes.spark.topology import App
from query1_checker import problems, read_trip, trip_line

_START = datetime(2013, 1, 1)
_STATELESS = "parser+metronome+filterByCoordinates+computeRouteID"


@pytest.fixture(scope="module")
def streaming(spark: SparkSession) -> SparkSession:
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    spark.dataSource.register(LogSource)
    return spark


@pytest.fixture(autouse=True)
def _no_query_is_left(spark: SparkSession) -> Iterator[None]:
    """A test that failed takes no other with it."""
    yield
    for query in spark.streams.active:
        query.stop()


def _finish(run: RunningApp, within_s: float = 150) -> None:
    deadline = time.monotonic() + within_s
    while not run.done():
        assert run.failed() == {}
        assert time.monotonic() < deadline, "not done in time"
        time.sleep(0.2)
    run.stop()


def _settle(run: RunningApp) -> None:
    for name in run.plan:
        run.queries[name].processAllAvailable()


def _replay_trips(
    spark: SparkSession, work: Path, lines: Sequence[str], restarts_at: Sequence[int], *, joined: bool = False
) -> RunningApp:
    """Runs top-routes over these lines; everything is stopped and begun anew at these places."""
    trips = RecordedTrips(lines)
    edges = [0, *restarts_at, len(lines)]
    for first, last in pairwise(edges):
        run = RunningApp(top_routes(), spark, work, joined=joined)
        run.share_among(_STATELESS, 2)
        run.start()
        feed = Feed(run.log(SOURCE))
        assert feed.position == first
        now = time.time()
        feed.append(trips.table(first, last - first, entered_s=now), entered_at_s=now)
        if last < len(lines):
            _settle(run)
            for chain in run.chains.values():  # beside the stream: nothing of it may show
                with ThreadPoolExecutor(1) as beside:
                    beside.submit(run.warm, chain.name, 2).result()
            run.stop()
        else:
            feed.append(trips.end(last, entered_s=now), entered_at_s=now, final=True)
            _finish(run)
    return run


def _numbered(lines: Sequence[str]) -> list[tuple[int, float, str]]:
    return [(number, 0.5, line) for number, line in enumerate(lines)]


def _line(after_s: int, to: int, *, start: tuple[int, int] = (150, 150)) -> str:
    time = _START + timedelta(seconds=after_s)
    return trip_line(time - timedelta(seconds=90), time, start, (to, 150))


def test_lines_that_are_no_trips_are_left_out(spark: SparkSession) -> None:
    good = _line(0, 151).split(",")
    wrong = {
        2: ["", "2013-01-01", "2013-13-01 00:00:00", "2013-02-30 00:00:00", "yesterday"],
        3: ["2013-01-01T00:00:00", "2013-01-01 00:00:00 ", "2013-01-01 25:00:00"],
        6: ["", "west", "NaN", "Infinity", "-Infinity"],
        9: ["--4", "0x10", "1e400"],
    }
    bad = [
        ",".join([*good[:place], text, *good[place + 1 :]])
        for place, texts in wrong.items()
        for text in texts
    ]
    lines = [
        "",
        "medallion,hack_license",
        ",".join(good[:-1]),
        ",".join([*good, "0"]),
        *bad,
        "\ud7ff,,",
        "," * 16,
    ]
    frame = spark.createDataFrame(_numbered([*lines, ",".join(good), END_LINE]), SOURCE_SCHEMA)
    left = parser(frame).collect()
    assert [(row.number, row.dropoff_s) for row in left] == [
        (len(lines), int((_START - datetime(1970, 1, 1)).total_seconds())),
        (len(lines) + 1, NEVER_S),
    ]


def test_cells_and_times_are_those_of_the_text(spark: SparkSession, recorded_trips: list[str]) -> None:
    frame = spark.createDataFrame(_numbered(recorded_trips), SOURCE_SCHEMA)
    routed = compute_route_id(filter_by_coordinates(metronome(parser(frame)))).collect()
    expected = {
        number: trip for number, line in enumerate(recorded_trips) if (trip := read_trip(line)) and trip.route
    }
    ours = {row.number: row for row in routed if row.kind == TRIP}
    assert len([row for row in routed if row.kind == TRIP]) == len(ours) == len(expected) == 10_004 - 178
    for number, trip in expected.items():
        assert cells_of(ours[number].route) == trip.route
        assert ours[number].dropoff_s == (trip.dropoff - datetime(1970, 1, 1)).total_seconds()
        assert ours[number].pickup_s == (trip.pickup - datetime(1970, 1, 1)).total_seconds()
    assert len({row.bucket for row in ours.values()}) == BUCKETS
    assert len({(row.route, row.bucket) for row in ours.values()}) == len(
        {row.route for row in ours.values()}
    )


@pytest.mark.parametrize("joined", [False, True], ids=["apart", "joined"])
def test_ties_outliers_and_trips_that_leave_are_right_across_restarts(
    streaming: SparkSession, tmp_path: Path, joined: bool
) -> None:
    lines = [
        "no trip",
        *(_line(place, 150 + place) for place in range(13)),
        *(_line(20, 150 + place) for place in range(6)),
        *(_line(20, 155 + place) for place in range(6)),  # the same time, after a restart
        _line(1800, 200, start=(0, 5)),  # outside; at this moment the first trip leaves
        _line(1812, 170),  # the last of the first thirteen leaves
        _line(1819, 170),
        "no trip either",
        _line(1820, 171),  # the twelve of one time leave
    ]
    run = _replay_trips(streaming, tmp_path, lines, restarts_at=[20], joined=joined)
    assert export(run.log(RESULTS), tmp_path / "top-routes.csv") > 10
    assert problems(lines, (tmp_path / "top-routes.csv").read_text().splitlines()) == []


def test_ten_thousand_real_trips_are_right_at_every_drop_off_time(
    streaming: SparkSession, tmp_path: Path, recorded_trips: list[str]
) -> None:
    times = [line.split(",")[3] for line in recorded_trips]
    amid = next(
        place for place in range(4000, 10_000) if times[place - 1] == times[place] == times[place + 1]
    )
    run = _replay_trips(streaming, tmp_path, recorded_trips, restarts_at=[amid])
    assert problems(recorded_trips, list(challenge_rows(run.log(RESULTS)))) == []


def test_an_empty_input_ends_without_a_row(streaming: SparkSession, tmp_path: Path) -> None:
    run = _replay_trips(streaming, tmp_path, [], restarts_at=[])
    assert export(run.log(RESULTS), tmp_path / "top-routes.csv") == 0


def test_a_paced_diamond_gives_every_id_once_per_branch(streaming: SparkSession, tmp_path: Path) -> None:
    app: App = paced(application_entry("diamond").graph(2), objective=Objective(response_time_s=1))
    run = RunningApp(app, streaming, tmp_path)
    feed = Feed(run.log("source"))
    for first in range(0, 60, 20):
        feed.append(Ids().table(first, 20, entered_s=1.0), entered_at_s=1.0)
    feed.append(Ids().end(60, entered_s=1.0), entered_at_s=1.0, final=True)
    run.start()
    _finish(run)
    log = run.log(app.sinks["sink"])
    files = [file for batch in log.batches(0, log.end()) for file in batch.files]
    ids = [
        one for file in files for one in parquet.read_table(log.data_file(file.name)).column("id").to_pylist()
    ]
    assert Counter(ids) == dict.fromkeys(range(60), 3)


def _quote_lines() -> list[str]:
    """Quotes of three symbols, with rubbish among them, and quotes from the past."""
    rng = random.Random(7)
    lines = ["timestamp,symbol,price,volume"]
    for number in range(1_600):
        at = datetime(2014, 10, 30, 9, 30) + timedelta(microseconds=40_000 * number)
        if number % 50 == 20:
            lines += ["no quote", f"{at},A,NaN,100", f"{at},A,-1,100", f"{at},,10,100"]
            lines += [f"{at - timedelta(minutes=1)},A,10,100", "yesterday,A,10,100", f"{at},A,10,-1"]
        lines.append(f"{at},{rng.choice('AAABC')},{100 + rng.gauss(0, 1):.2f},{rng.randrange(1, 9)}00")
    return lines


def test_candlesticks_are_those_of_the_plain_form_across_batches_replicas_and_a_restart(
    streaming: SparkSession, tmp_path: Path
) -> None:
    feed_of = RecordedQuotes(_quote_lines())
    assert feed_of.total is not None
    for first, last in pairwise((0, 711, feed_of.total)):  # amid 25 quotes of every symbol
        run = RunningApp(trading.algo_trader(max_replicas=2), streaming, tmp_path)
        feed = Feed(run.log(trading.SOURCE))
        assert feed.position == first
        for begin, end in pairwise((first, first + 1, last)):
            feed.append(feed_of.table(begin, end - begin, entered_s=0.5), entered_at_s=0.5)
        if last < feed_of.total:
            run.start()
            _settle(run)
            run.stop()
    feed.append(feed_of.end(feed_of.total, entered_s=0.5), entered_at_s=0.5, final=True)
    run.start()
    _finish(run)
    log = run.log(trading.RESULTS)
    files = [file for batch in log.batches(0, log.end()) for file in batch.files]
    ours = [row for file in files for row in parquet.read_table(log.data_file(file.name)).to_pylist()]
    _, shown = Trader().advanced(*feed_of.quotes(0, feed_of.total, entered_s=0.5))
    plain = [
        {"symbol": symbol, **dict(zip(candles._fields, row, strict=True))}
        for symbol, candles in shown.items()
        for row in zip(*(column.tolist() for column in candles), strict=True)
    ]
    assert len(plain) > 60
    assert sorted(ours, key=lambda row: int(row["number"])) == sorted(plain, key=lambda row: row["number"])
