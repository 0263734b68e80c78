"""An application of a user's own, as `penstock run module:app` takes it: its sources have readers."""

from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.apps.entry import AppEntry
from penstock.domain.application import Application
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.reconfigure.method import Method

if TYPE_CHECKING:
    from penstock.apps.feeding.load import Load
    from penstock.runtimes.spark.feed import Feed, Feeder, FeederOf
    from penstock.runtimes.spark.topology import App


class NoFeeder:
    """Brings nothing: Spark reads the sources itself."""

    problem: str | None = None

    def start(self) -> None: ...

    def stop(self) -> None: ...


def own_entry(name: str, app: "App") -> AppEntry:
    """It brings its objective, its replicas and its protocols with it."""
    objective_s = app.objective.response_time_s
    if objective_s is None:
        raise InputError(f"application '{name}': its objective has no response time")
    for source in app.sources:
        if source not in app.readers:
            raise InputError(
                f"application '{name}': source '{source}' has no reader, so that nothing feeds it; "
                "give it one, or write an AppEntry with a feeder"
            )

    def graph(max_replicas: int) -> Application:
        return app.graph()

    def on_spark(*, objective: Objective, max_replicas: int, protocol: Method) -> "App":
        mine = copy(app)
        mine.objective = objective
        return mine

    return AppEntry(
        name=app.name,
        title=app.name,
        graph=graph,
        on_spark=on_spark,
        feeder=_feeder,
        results=_results,
        objective_s=objective_s,
        own=True,
    )


def _feeder(load: "Load") -> "FeederOf":
    def made(feeds: "Mapping[str, Feed]") -> "Feeder":
        return NoFeeder()

    return made


def _results(app: "App", work: Path, results: Path) -> str:
    """Where they are: in the folder of results, or with whoever wrote them."""
    from penstock.runtimes.spark.stream_log import StreamLog

    said = []
    for sink, origin in app.kept.items():
        tuples = StreamLog(work / "streams" / origin).export(results / sink)
        said.append(f"{tuples} tuples in {results / sink}")
    if app.writers:
        said.append(f"{'other ' if said else ''}results where the application's writers put them")
    return ", ".join(said)
