"""What an application brings with it: its name, its graph, its form on Spark and what feeds it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from penstock.domain.application import Application
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.reconfigure.method import Method

if TYPE_CHECKING:
    from penstock.apps.feeding.load import Load
    from penstock.runtimes.spark.feed import FeederOf
    from penstock.runtimes.spark.topology import App


class OnSpark(Protocol):
    """Makes the application for a cluster."""

    def __call__(self, *, objective: Objective, max_replicas: int, protocol: Method) -> "App": ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AppEntry:
    """An application by name, in the simulator and on Spark."""

    name: str
    title: str
    graph: Callable[[int], Application]  # for the simulator, no operator with more replicas than this
    on_spark: OnSpark
    feeder: "Callable[[Load], FeederOf]"
    results: "Callable[[App, Path, Path], str]"  # (app, work folder, results folder) -> what to say of them
    aliases: tuple[str, ...] = ()
    objective_s: float = 10.0  # of a live run that is given none
    published_objective_s: float | None = None  # the one the graph was published with
    delays_s: Mapping[str, float] = field(default_factory=dict)  # that neither load nor nodes change
    # Bounds of single operators where a paper gives them, for an objective in seconds.
    bounds_s: Callable[[float], dict[str, float]] | None = None
    live_graph: Callable[[int], Application] | None = None  # with service times as on Spark, where known
    # Its operators share queries if nothing else is asked for: better where they compute, worse where they
    # wait, as then they wait one after the other.
    joined: bool = False
    own: bool = False  # a user's: it brings its load, its replicas and its protocols with it

    def checked_live_graph(self, max_replicas: int) -> Application:
        if self.live_graph is None:
            raise InputError(f"application '{self.name}': its service times are not known in advance")
        return self.live_graph(max_replicas)
