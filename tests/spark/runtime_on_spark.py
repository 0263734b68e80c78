"""The contract of runtimes on Spark: the embedded cluster and a paced application, one for all claims.

`test_in_own_process.py` runs it in a process of its own: a session on a cluster cannot stand
beside the tests' local one.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.apps.feeding.replayer import Replayer
from penstock.apps.feeding.schedule import ByRates, Shape
from penstock.apps.paced.form import paced
from penstock.apps.paced.ids import Ids
from penstock.control.ports import Actuator, Monitor
from penstock.domain.application import Operator, pipeline
from penstock.domain.objective import Objective
from penstock.runtimes.spark.actuator import SparkActuator
from penstock.runtimes.spark.cluster import LocalCluster, NodeKind
from penstock.runtimes.spark.daemon import ZYGOTE_VARIABLE
from penstock.runtimes.spark.feed import Feed
from penstock.runtimes.spark.monitor import SparkMonitor
from penstock.runtimes.spark.nodes import nodes_for
from penstock.runtimes.spark.running import RunningApp
from penstock.runtimes.spark.session import EMBEDDED, python_variables, session
from penstock.testing.runtime import RuntimeContract

KINDS = [NodeKind(name="slow"), NodeKind(name="fast", speedup=2.0)]
SCALED = Operator(name="scaled", service_time_s=0.010, max_replicas=2)
STEADY = Operator(name="steady", service_time_s=0.002)
RATE = 20.0
SLOW_MACHINE_S = 180.0


@dataclass(frozen=True)
class Started:
    running: RunningApp
    monitor: SparkMonitor
    actuator: SparkActuator


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    work = tmp_path_factory.mktemp("run")
    with ExitStack() as ending:
        yield _start(work, ending, KINDS)


def _start(work: Path, ending: ExitStack, kinds: list[NodeKind]) -> Started:
    """As a live run does, with nobody who decides."""
    app = paced(pipeline("contract", SCALED, STEADY), objective=Objective(response_time_s=3))
    names = [kind.name for kind in kinds]
    tagged = len(kinds) > 1
    cluster = LocalCluster(work / "cluster", room=4, tagged=tagged)
    ending.enter_context(cluster)
    variables = python_variables(app.modules, app.places)
    variables[ZYGOTE_VARIABLE] = str(cluster.start_zygote(variables))
    spark = session(
        app.name, cluster.master_url, work=work, tagged=tagged, variables=variables, conf=EMBEDDED
    )
    ending.callback(spark.stop)
    running = RunningApp(app, spark, work, run="contract" if tagged else None)
    nodes = nodes_for(cluster, spark, running, kinds)
    actuator = SparkActuator(running, spark, nodes, names)
    actuator.adopt({name: [nodes.acquire(name, names[-1])] for name in running.chains})
    running.summon(within_s=SLOW_MACHINE_S, check=cluster.check)
    ending.callback(running.stop)
    running.start()
    ending.callback(actuator.stop)
    monitor = SparkMonitor(running, actuator, names)
    schedule = ByRates(Shape(3600).constant(RATE), slot_s=1.0)
    feeder = Replayer(Feed(running.log("source")), Ids(), schedule)
    ending.callback(feeder.stop)
    feeder.start()
    return Started(running, monitor, actuator)


def _parent_of(stat: Path) -> int:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended meanwhile
        return 0


def _command_of(number: int) -> str:
    try:
        return Path(f"/proc/{number}/cmdline").read_text()
    except OSError:
        return ""


class TestSpark(RuntimeContract):
    operators = ("scaled", "steady")
    scaled = "scaled"
    node_types = len(KINDS)
    changes_within = int(SLOW_MACHINE_S / 2)

    @pytest.fixture(autouse=True)
    def _shared(self, started: Started) -> None:
        self.spark = started

    def start(self) -> tuple[Monitor, Actuator]:
        return self.spark.monitor, self.spark.actuator

    def advance(self) -> None:
        for _ in range(4):
            time.sleep(0.5)
            self.spark.actuator.poll()

    @contextmanager
    def nothing_runs(self) -> Iterator[None]:
        running = self.spark.running
        running.rest_chain(self.scaled, within_s=SLOW_MACHINE_S)
        rested_s, deadline = time.time(), time.monotonic() + SLOW_MACHINE_S
        while (last := running.log("source").last()) is None or last.published_at_s < rested_s:
            assert time.monotonic() < deadline, "no input came"
            time.sleep(0.1)
        try:
            yield
        finally:
            running.start_query(self.scaled)

    def test_an_operator_that_cannot_work_keeps_the_time_it_was_last_measured(self) -> None:
        with self.nothing_runs():
            before = self._one(self.spark.monitor.observe())
            self.advance()
            seen = self.spark.monitor.observe()
        assert self._one(seen).at_s == before.at_s
        assert seen.at_s - before.at_s >= 2
        waited_s = self._one(seen).response_time_s
        assert waited_s is not None
        assert waited_s >= 2

    def test_the_python_of_executors_is_forked_from_the_zygote(self) -> None:
        parents = {int(file.parent.name): _parent_of(file) for file in Path("/proc").glob("[0-9]*/stat")}
        zygotes = {
            number
            for number in parents
            if "--zygote" in _command_of(number) and "--zygote" not in _command_of(parents[number])
        }
        daemons = [number for number, parent in parents.items() if parent in zygotes]
        assert len(daemons) >= len(self.operators)
        assert all(parents[zygote] == os.getpid() for zygote in zygotes)
        # Else a key would belong to one partition in a fork, and to another in a worker of Spark's own.
        wanted = self.spark.running.spark.sparkContext.environment["PYTHONHASHSEED"]
        for zygote in zygotes:
            assert f"PYTHONHASHSEED={wanted}" in Path(f"/proc/{zygote}/environ").read_text().split("\0")

    def test_how_full_the_host_is_and_that_a_paced_operator_waits_is_seen(self) -> None:
        """One that computes uses as much CPU as it works, always; one that waits may, while it starts."""
        deadline = time.monotonic() + SLOW_MACHINE_S
        computing = 1.0
        while computing >= 0.5 and time.monotonic() < deadline:
            # So that the work on tuples outweighs what every task takes to begin and end.
            with self.nothing_runs():
                for _ in range(3):
                    self.advance()
                self.spark.monitor.observe()
            seen = self.spark.monitor.observe()
            while seen.host_loads is None or self._one(seen).computing is None:
                assert time.monotonic() < deadline, "not seen"
                self.advance()
                seen = self.spark.monitor.observe()
            assert list(seen.host_loads) == [socket.gethostname()]
            assert 0 < seen.host_loads[socket.gethostname()] <= 1
            computing = self._one(seen).computing or 0.0
        assert computing < 0.5  # it sleeps 10 ms a tuple
