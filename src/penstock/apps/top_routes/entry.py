"""The entry of top-routes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.apps.entry import AppEntry
from penstock.apps.top_routes.graph import BOUNDS_S, OBJECTIVE_S, REFRESH_DELAY_S, top_routes_graph
from penstock.domain.application import Application
from penstock.domain.objective import Objective
from penstock.reconfigure.method import Method

if TYPE_CHECKING:
    from penstock.apps.feeding.load import Load
    from penstock.runtimes.spark.feed import Feed, Feeder, FeederOf
    from penstock.runtimes.spark.topology import App


def _graph(max_replicas: int) -> Application:
    graph = top_routes_graph()
    operators = (replace(one, max_replicas=min(one.max_replicas, max_replicas)) for one in graph.operators)
    return replace(graph, operators=tuple(operators))


def _bounds_s(objective_s: float) -> dict[str, float]:
    """As in Cardellini 2018, in proportion to the objective."""
    return {operator: bound * objective_s / OBJECTIVE_S for operator, bound in BOUNDS_S.items()}


def _on_spark(*, objective: Objective, max_replicas: int, protocol: Method) -> "App":
    from penstock.apps.top_routes.query import top_routes

    return top_routes(objective=objective, max_replicas=max_replicas, protocol=protocol)


def _feeder(load: "Load") -> "FeederOf":
    """Recorded trips where a file is given, generated ones otherwise."""
    from penstock.apps.feeding.replayer import Replayer
    from penstock.apps.feeding.schedule import ByTimes, Schedule
    from penstock.apps.top_routes.query import SOURCE
    from penstock.apps.top_routes.trip_lines import GeneratedTrips, Lines, RecordedTrips

    tuples: Lines
    schedule: Schedule
    if load.input is not None:
        tuples = trips = RecordedTrips.read(load.input, amplification=load.amplification, seed=load.seed)
        schedule = ByTimes(trips.times_s, acceleration=load.acceleration)
    else:
        schedule = load.schedule()
        tuples = GeneratedTrips(schedule, acceleration=load.acceleration, seed=load.seed)

    def made(feeds: "Mapping[str, Feed]") -> "Feeder":
        return Replayer(feeds[SOURCE], tuples, schedule)

    return made


def _results(app: "App", work: Path, results: Path) -> str:
    from penstock.apps.top_routes.query import RESULTS, export
    from penstock.runtimes.spark.stream_log import StreamLog

    rows = export(StreamLog(work / "streams" / RESULTS), results / "top-routes.csv")
    return f"{rows} rows in {results / 'top-routes.csv'}"


APPLICATION = AppEntry(
    name="top-routes",
    title="the ten most frequent taxi routes of the last 30 minutes (DEBS 2015, query 1)",
    graph=_graph,
    on_spark=_on_spark,
    feeder=_feeder,
    results=_results,
    published_objective_s=OBJECTIVE_S,
    delays_s={"globalRank": REFRESH_DELAY_S},
    bounds_s=_bounds_s,
    joined=True,
)
