"""Paced applications as entries: any graph whose operators take their service times, and do nothing else."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.apps.entry import AppEntry
from penstock.apps.paced.graph import NAME, light_heavy_medium
from penstock.domain.application import Application
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.reconfigure.method import Method

if TYPE_CHECKING:
    from penstock.apps.feeding.load import Load
    from penstock.runtimes.spark.feed import Feed, Feeder, FeederOf
    from penstock.runtimes.spark.topology import App

PAPER_SLOWDOWN = 5.0  # the graphs of Russo 2023 serve hundreds of tuples a second; a small cluster, tens


def paced_entry(
    name: str, title: str, graph: Callable[[int], Application], *, slowdown: float = 1.0
) -> AppEntry:
    """The entry of a graph that can be paced."""

    def slowed(max_replicas: int) -> Application:
        plain = graph(max_replicas)
        operators = (replace(one, service_time_s=slowdown * one.service_time_s) for one in plain.operators)
        return replace(plain, operators=tuple(operators))

    def on_spark(*, objective: Objective, max_replicas: int, protocol: Method) -> "App":
        from penstock.apps.paced.form import paced

        return paced(graph(max_replicas), objective=objective, slowdown=slowdown, protocol=protocol)

    return AppEntry(
        name=name,
        title=title,
        graph=graph,
        on_spark=on_spark,
        feeder=_feeder(name),
        results=_results,
        aliases=() if name == NAME else (f"{NAME}-{name}",),
        live_graph=slowed,
    )


def _feeder(name: str) -> "Callable[[Load], FeederOf]":
    def feeder(load: "Load") -> "FeederOf":
        if load.input is not None:
            raise InputError(f"--input {load.input}: application '{name}' makes its own tuples")
        schedule = load.schedule()

        def made(feeds: "Mapping[str, Feed]") -> "Feeder":
            from penstock.apps.feeding.replayer import Replayer
            from penstock.apps.paced.ids import Ids

            return Replayer(next(iter(feeds.values())), Ids(), schedule)

        return made

    return feeder


def _results(app: "App", work: Path, results: Path) -> str:
    from penstock.runtimes.spark.stream_log import StreamLog

    logs = {sink: StreamLog(work / "streams" / origin) for sink, origin in app.sinks.items()}
    counts = {sink: sum(batch.tuples for batch in log.all()) for sink, log in logs.items()}
    return ", ".join(f"{tuples} tuples at {sink}" for sink, tuples in counts.items())


APPLICATION = paced_entry(NAME, "a pipeline whose middle operator is the slow one", light_heavy_medium)
