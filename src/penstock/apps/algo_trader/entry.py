"""The entry of algo-trader."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.apps.algo_trader.graph import NAME, quotes_to_candles
from penstock.apps.entry import AppEntry
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.reconfigure.method import Method

if TYPE_CHECKING:
    from penstock.apps.feeding.load import Load
    from penstock.runtimes.spark.feed import Feed, Feeder, FeederOf
    from penstock.runtimes.spark.topology import App


def _on_spark(*, objective: Objective, max_replicas: int, protocol: Method) -> "App":
    from penstock.apps.algo_trader.query import algo_trader

    return algo_trader(objective=objective, max_replicas=max_replicas, protocol=protocol)


def _feeder(load: "Load") -> "FeederOf":
    """Recorded quotes where a file is given, generated ones otherwise."""
    from penstock.apps.algo_trader.query import SOURCE
    from penstock.apps.algo_trader.quote_feed import GeneratedQuotes, QuoteFeed, RecordedQuotes
    from penstock.apps.feeding.replayer import Replayer
    from penstock.apps.feeding.schedule import ByTimes, Schedule

    if load.amplification != 1:
        raise InputError(f"--amplification {load.amplification}: application '{NAME}' has no surrogates")
    tuples: QuoteFeed
    schedule: Schedule
    if load.input is not None:
        tuples = recorded = RecordedQuotes.read(load.input)
        schedule = ByTimes(recorded.times_s, acceleration=load.acceleration)
    else:
        schedule = load.schedule()
        tuples = GeneratedQuotes(schedule, acceleration=load.acceleration, seed=load.seed)

    def made(feeds: "Mapping[str, Feed]") -> "Feeder":
        return Replayer(feeds[SOURCE], tuples, schedule)

    return made


def _results(app: "App", work: Path, results: Path) -> str:
    from penstock.apps.algo_trader.query import RESULTS, export
    from penstock.runtimes.spark.stream_log import StreamLog

    candles = export(StreamLog(work / "streams" / RESULTS), results / "candles.csv")
    return f"{candles} candlesticks in {results / 'candles.csv'}"


APPLICATION = AppEntry(
    name=NAME,
    title="prices estimated from the last 1,000 quotes of every symbol, as candlesticks (De Matteis 2017)",
    graph=quotes_to_candles,
    on_spark=_on_spark,
    feeder=_feeder,
    results=_results,
)
