"""The entry of the ledger."""

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.apps.entry import AppEntry
from penstock.domain.application import Application, Operator, pipeline
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.files import write_whole
from penstock.reconfigure.method import Method

if TYPE_CHECKING:
    from penstock.apps.feeding.load import Load
    from penstock.runtimes.spark.feed import Feed, Feeder, FeederOf
    from penstock.runtimes.spark.topology import App

NAME = "ledger"


def _graph(max_replicas: int) -> Application:
    """An assumption: half a millisecond, and twice one of pandas and state."""
    return pipeline(
        NAME,
        Operator(name="read", service_time_s=0.0005, max_replicas=max_replicas),
        Operator(name="post", service_time_s=0.001, max_replicas=max_replicas),
        Operator(name="audit", service_time_s=0.001, max_replicas=max_replicas),
    )


def _on_spark(*, objective: Objective, max_replicas: int, protocol: Method) -> "App":
    from penstock.apps.ledger.query import ledger

    return ledger(objective=objective, max_replicas=max_replicas, protocol=protocol)


def _feeder(load: "Load") -> "FeederOf":
    if load.input is not None:
        raise InputError(f"--input {load.input}: application '{NAME}' makes its own tuples")
    schedule = load.schedule()

    def made(feeds: "Mapping[str, Feed]") -> "Feeder":
        from penstock.apps.feeding.replayer import Replayer
        from penstock.apps.ledger.query import SOURCE, Entries

        return Replayer(feeds[SOURCE], Entries(), schedule)

    return made


def _results(app: "App", work: Path, results: Path) -> str:
    from penstock.apps.ledger.books import Posted
    from penstock.apps.ledger.query import RESULTS, books_of
    from penstock.runtimes.spark.stream_log import StreamLog

    log = StreamLog(work / "streams" / RESULTS)
    lines = (",".join(map(str, row)) for row in chain([Posted._fields], books_of(log)))
    write_whole(results / "books.csv", (f"{line}\n" for line in lines))
    return f"{sum(batch.tuples for batch in log.all())} entries in {results / 'books.csv'}"


APPLICATION = AppEntry(
    name=NAME,
    title="entries numbered and summed by account and by branch: what was lost or doubled would show",
    graph=_graph,
    on_spark=_on_spark,
    feeder=_feeder,
    results=_results,
    joined=True,
)
