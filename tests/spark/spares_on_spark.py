"""Spares on Spark: what they do while they wait, when they are needed, when they die and at the end.

`test_in_own_process.py` runs it in a process of its own: a session on a cluster cannot stand
beside the tests' local one.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.bench.attached import process_of
from penstock.bench.light_load import SCALED, Place, place
from penstock.domain.deployment import Replicas
from penstock.domain.request import ScaleOut, Verdict
from penstock.reconfigure.words import Ending, Record
from penstock.runtimes.spark.actuator import SparkActuator
from penstock.runtimes.spark.cluster import NodeKind
from penstock.runtimes.spark.executors import executors
from penstock.runtimes.spark.nodes import nodes_for
from penstock.runtimes.spark.spares import SpareNodes

KIND = NodeKind(name="standard")
SLOW_MACHINE_S = 180.0


@dataclass(frozen=True)
class Started:
    where: Place
    spares: SpareNodes
    actuator: SparkActuator
    ended: list[Record]

    def until(self, true: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + SLOW_MACHINE_S
        while not true():
            assert time.monotonic() < deadline_s, "it did not happen"
            self.where.check()
            time.sleep(0.1)
            self.actuator.poll()
            if not self.actuator.reconfiguring:
                self.spares.refill()

    def spare(self) -> str:
        """The executor of the scaled chain that is no replica's."""
        replicas = {node.name for node in self.actuator.nodes(SCALED)}
        (found,) = (
            one.id
            for name, one in self.spares.executors().items()
            if one is not None and name.startswith(f"{SCALED}-") and name not in replicas
        )
        return found

    def works_on_tuples(self, batches: int) -> set[str]:
        """Executors that the scaled chain's next micro-batches ran on."""
        self.where.running.measurements.take()
        used: list[frozenset[str]] = []
        deadline_s = time.monotonic() + SLOW_MACHINE_S
        while len(used) < batches:
            assert time.monotonic() < deadline_s, "no micro-batches"
            time.sleep(0.1)
            reports = self.where.running.measurements.take()
            used += [frozenset(t.executor for t in one.tasks) for one in reports if one.chain == SCALED]
        return set().union(*used)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def started(work: Path) -> Iterator[Started]:
    with place(work) as where:
        nodes = nodes_for(where.cluster, where.spark, where.running, [KIND])
        spares = SpareNodes(nodes, where.running, spares=1, kind=KIND.name)
        ended: list[Record] = []
        actuator = SparkActuator(where.running, where.spark, spares, [KIND.name], ended=ended.append)
        actuator.adopt({name: [spares.acquire(name, KIND.name)] for name in where.running.chains})
        with where.at_work():
            yield Started(where, spares, actuator, ended)
            spares.close()
            actuator.stop()


def test_a_spare_gets_no_tuples_until_it_is_needed_and_then_at_once(started: Started) -> None:
    started.until(lambda: started.spares.ready(SCALED) == 1)
    started.until(lambda: bool(list(started.where.running.work.glob(f"spares-*/{SCALED}-*.held"))))
    spare = started.spare()
    assert spare not in started.works_on_tuples(batches=10)
    request = ScaleOut(operator=SCALED, target=Replicas((2,)), nodes=(), score=1.0, reason="a test")
    started.actuator.apply(Verdict((request,)))
    started.until(lambda: bool(started.ended))
    (record,) = started.ended
    assert record.outcome is Ending.DONE
    assert started.where.running.served(SCALED, spare)
    assert spare in started.works_on_tuples(batches=2)


def test_a_spare_that_dies_is_replaced(started: Started) -> None:
    started.until(lambda: started.spares.ready(SCALED) == 1)
    spare = started.spare()
    os.kill(process_of(started.where.spark.sparkContext.applicationId, spare), signal.SIGKILL)
    started.until(lambda: started.spares.ready(SCALED) == 0)  # Spark lists it no longer before it is missed
    started.until(lambda: started.spares.ready(SCALED) == 1)
    assert started.spare() != spare


def test_a_node_that_is_released_is_gone_whatever_runs_on_it(started: Started) -> None:
    started.until(lambda: started.spares.ready(SCALED) == 1)
    spare = started.spare()
    node = started.spares.acquire(SCALED, KIND.name)
    started.spares.release(node)
    started.until(lambda: spare not in executors(started.where.spark))


def test_at_the_end_nothing_waits_for_spares(started: Started, work: Path) -> None:
    started.until(lambda: started.spares.ready(SCALED) == 1)
    started.spares.close()
    started.until(lambda: started.spare() in started.works_on_tuples(batches=1))  # it is let go
    assert not list(work.glob("spares-*"))
