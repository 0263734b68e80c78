"""An application at work under a steady load, on an embedded cluster, with nobody who decides."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.apps.feeding.load import Load
from penstock.apps.registry import application_entry
from penstock.domain.objective import Objective
from penstock.reconfigure.method import Method
from penstock.runtimes.spark import class_archive
from penstock.runtimes.spark.cluster import ClusterError, LocalCluster
from penstock.runtimes.spark.daemon import ZYGOTE_VARIABLE
from penstock.runtimes.spark.feed import Feed
from penstock.runtimes.spark.running import RunningApp
from penstock.runtimes.spark.session import EMBEDDED, python_variables, session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.runtimes.spark.feed import FeederOf

SCALED = "lookup"
_ROOM = 8  # executors
_LONGEST_S = 1800.0
_EXECUTORS_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """An application, and how much comes to it."""

    application: str
    scaled: str  # the chain that changes
    tuples: float  # per second
    max_replicas: int = 2
    trigger_s: float = 0.2
    joined: bool = False


# One replica is busy for less than half of the time.
LOOKUPS = Steady(application="lookups", scaled=SCALED, tuples=20.0)


@dataclass(frozen=True)
class Place:
    """Where the application is going to run."""

    steady: Steady
    cluster: LocalCluster
    spark: "SparkSession"
    running: RunningApp
    feeder_of: "FeederOf"

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Once somebody sees to executors."""
        running = self.running
        with ExitStack() as ending:
            running.summon(within_s=_EXECUTORS_S, check=self.cluster.check)
            ending.callback(running.stop)
            running.start()
            feeder = self.feeder_of({name: Feed(running.log(name)) for name in running.app.sources})
            ending.callback(feeder.stop)
            feeder.start()
            yield

    def check(self) -> None:
        """Raise when there is nothing to measure any more."""
        self.cluster.check()
        for name, why in self.running.failed().items():
            raise ClusterError(f"query '{name}' failed: {why}")


@contextmanager
def place(work: Path, steady: Steady = LOOKUPS) -> Iterator[Place]:
    """A cluster and a session, as `penstock run` has them."""
    entry = application_entry(steady.application)
    objective = Objective(response_time_s=entry.objective_s)
    app = entry.on_spark(objective=objective, max_replicas=steady.max_replicas, protocol=Method.LIVE)
    load = Load(low=steady.tuples, shape="constant", seconds=_LONGEST_S)
    options = class_archive.options()
    with LocalCluster(work / "cluster", room=_ROOM) as cluster:
        variables = python_variables(app.modules, app.places)
        variables[ZYGOTE_VARIABLE] = str(cluster.start_zygote(variables))
        spark = session(
            app.name,
            cluster.master_url,
            work=work,
            variables=variables,
            executor_options=options,
            conf=EMBEDDED,
            private=cluster.private,
        )
        try:
            running = RunningApp(app, spark, work, trigger_s=steady.trigger_s, joined=steady.joined)
            yield Place(steady, cluster, spark, running, entry.feeder(load))
        finally:
            spark.stop()
