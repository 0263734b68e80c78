"""When an operator was last measured, as monitors of Spark see it, and what the safety chain makes of it."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.control.safety import admit
from penstock.control.safety_settings import SafetySettings
from penstock.control.watch import SafetyMemory
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import ScaleOut
from penstock.runtimes.spark import attached_executors, attached_query, monitor, steady
from penstock.runtimes.spark.attached_executors import ExecutorActuator
from penstock.runtimes.spark.attached_query import QueryMonitor
from penstock.runtimes.spark.executors import Executor
from penstock.runtimes.spark.monitor import SparkMonitor
from penstock.runtimes.spark.nodes import Node
from penstock.runtimes.spark.query_work import Work
from penstock.runtimes.spark.running import BatchReport, RunningApp
from penstock.runtimes.spark.stream_log import LogFile
from penstock.runtimes.spark.taps import TaskReport
from penstock.runtimes.spark.topology import App

INTERVAL_S = 5.0
SAFETY = SafetySettings(interval_s=INTERVAL_S)  # so three intervals are too old: 15 s
ONE_TYPE = (NodeType(name="standard", speedup=1.0, price=1.0),)
FIRST, SECOND = (Node(name=f"{name}-1", chain=name, kind="standard") for name in ("first", "second"))


def vetoes(seen: ApplicationObservation, operator: str) -> list[str]:
    """What the safety chain says to one more replica."""
    request = ScaleOut(operator=operator, target=Replicas((2,)), nodes=(), score=1.0, reason="late")
    admitted, _ = admit(SAFETY, ONE_TYPE, SafetyMemory(), (request,), {}, seen)
    return [veto.reason for veto in admitted.vetoes]


@dataclass
class Clock:
    now_s: float = 1000.0
    behind_s: float = 0.0  # the one on the wall, since it was set back

    def time(self) -> float:
        return self.now_s


@dataclass
class Pipeline:
    """Two operators one after the other on Spark, without Spark: events are given by hand."""

    work: Path
    clock: Clock
    there: dict[str, Executor] = field(default_factory=dict)
    epoch: int = 0

    def __post_init__(self) -> None:
        app = App("pipeline", objective=Objective(response_time_s=1))
        first = app.operator("first", lambda frame: frame, app.source("source", schema="x long"))
        app.sink("sink", app.operator("second", lambda frame: frame, first))
        spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(master="local[1]"))
        self.running = RunningApp(app, spark, self.work)
        nodes = {"first": (FIRST,), "second": (SECOND,)}
        actuator: Any = SimpleNamespace(
            nodes=nodes.__getitem__,
            executors=lambda: self.there,
            ready_s=lambda _: None,
            coming=lambda _: None,
            reconfiguring=(),
        )
        for node in (FIRST, SECOND):
            self.there[node.name] = Executor(id=node.name, host="h", profile=0, busy_s=0.0, tasks=1)
        self.monitor = SparkMonitor(self.running, actuator, ["standard"])

    def arrive(self, tuples: int) -> None:
        now_s, self.epoch = self.clock.now_s, self.epoch + 1
        self.running.log("source").publish(
            epoch=self.epoch,
            files=[LogFile(name="f", tuples=tuples)],
            published_at_s=now_s,
            origins=((now_s, tuples),),
        )

    def finish(self, *, reached: int, took_s: float = 1.0) -> None:
        """A micro-batch of the first operator ends, having read the source up to this batch."""
        now_s = self.clock.now_s
        task = TaskReport(file="f", tuples=1, executor=FIRST.name, began_s=now_s - took_s, ended_s=now_s)
        self.running.measurements.add(
            BatchReport(
                chain="first",
                epoch=reached,
                began_s=now_s - took_s,
                ended_s=now_s,
                tuples_in=10,
                tuples_out=1,
                waited=((now_s - 2 * took_s, 10),),
                reached={"source": reached},
                tasks=(task,),
                entries=(),
                finished=(),
            )
        )

    def after(self, seconds: float) -> ApplicationObservation:
        self.clock.now_s += seconds
        return self.monitor.observe()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (monitor, attached_query, attached_executors):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(steady, "now_s", lambda: clock.now_s + clock.behind_s)
    return clock


@pytest.fixture
def pipeline(tmp_path: Path, clock: Clock) -> Pipeline:
    return Pipeline(tmp_path, clock)


def one(seen: ApplicationObservation, operator: str) -> OperatorObservation:
    return next(one for one in seen.operators if one.operator == operator)


def ages(seen: ApplicationObservation) -> dict[str, float]:
    return {one.operator: seen.at_s - one.at_s for one in seen.operators}


def test_an_operator_without_input_is_measured_because_it_has_nothing_to_do(pipeline: Pipeline) -> None:
    for _ in range(10):
        seen = pipeline.after(INTERVAL_S)
        assert ages(seen) == {"first": 0, "second": 0}
        assert one(seen, "first").utilisation == 0


def test_a_query_that_hangs_with_input_waiting_grows_stale_while_its_neighbour_does_not(
    pipeline: Pipeline,
) -> None:
    pipeline.arrive(10)
    pipeline.clock.now_s += 2
    pipeline.finish(reached=1)
    assert ages(pipeline.after(3)) == {"first": 0, "second": 0}
    pipeline.arrive(10)
    told = []
    for interval in range(1, 5):
        pipeline.arrive(10)
        seen = pipeline.after(INTERVAL_S)
        assert ages(seen) == {"first": INTERVAL_S * interval, "second": 0}
        # What is known without the query is still reported: how long the oldest has waited, how many wait.
        assert one(seen, "first").response_time_s == INTERVAL_S * interval
        assert one(seen, "first").backlog == 10 * (interval + 1)
        assert one(seen, "first").utilisation is None
        told.append(vetoes(seen, "first")[0])
    assert told == ["utilisation not measured"] * 3 + ["the last measurement is 20 s old, more than 15 s"]


def test_the_micro_batch_that_ends_at_last_makes_it_new_again(pipeline: Pipeline) -> None:
    pipeline.arrive(10)
    pipeline.finish(reached=1)
    pipeline.after(INTERVAL_S)
    pipeline.arrive(10)
    assert "measurement is 30 s old" in vetoes(pipeline.after(30), "first")[0]
    pipeline.arrive(10)
    pipeline.finish(reached=2)
    seen = pipeline.after(1)
    assert ages(seen) == {"first": 0, "second": 0}
    assert not any("old" in veto for veto in vetoes(seen, "first"))


def test_an_operator_that_was_never_measured_is_as_old_as_the_monitor(pipeline: Pipeline) -> None:
    pipeline.arrive(10)
    pipeline.after(INTERVAL_S)
    assert ages(pipeline.after(INTERVAL_S)) == {"first": 2 * INTERVAL_S, "second": 0}


def test_what_the_source_brings_is_offered_to_all_operators_as_it_will_reach_them(pipeline: Pipeline) -> None:
    """The first operator passes on one tuple of ten, and has 30 waiting."""
    pipeline.arrive(10)
    pipeline.finish(reached=1)
    pipeline.after(INTERVAL_S)
    for _ in range(3):
        pipeline.arrive(10)
    seen = pipeline.after(INTERVAL_S)
    offered = [one(seen, name).offered_rate for name in ("first", "second")]
    assert offered == pytest.approx([30 / INTERVAL_S, 3 / INTERVAL_S])
    assert one(seen, "second").arrival_rate is None  # the first is in the middle of a micro-batch


def test_replicas_that_shared_a_micro_batch_are_counted_without_those_that_had_nothing(
    pipeline: Pipeline,
) -> None:
    pipeline.arrive(10)
    pipeline.finish(reached=1)
    assert one(pipeline.after(INTERVAL_S), "first").batch_replicas == 1


def test_without_an_executor_nothing_to_do_is_no_measurement(pipeline: Pipeline) -> None:
    del pipeline.there[FIRST.name]
    assert ages(pipeline.after(20)) == {"first": 20, "second": 0}


@dataclass
class Query:
    """Stands for a streaming query that Penstock did not build."""

    recentProgress: list[dict[str, Any]] = field(default_factory=list)  # noqa: N815, as in Spark
    isActive: bool = True  # noqa: N815, as in Spark
    runId: str = "1"  # noqa: N815, as in Spark
    has_data: bool = True

    @property
    def status(self) -> dict[str, Any]:
        return {"message": "", "isDataAvailable": self.has_data, "isTriggerActive": self.has_data}

    def finish(self, *, began_s: float = 0.0, took_s: float = 0.8) -> None:
        began = datetime.fromtimestamp(began_s, UTC).isoformat().replace("+00:00", "Z")
        done = {"batchId": len(self.recentProgress), "numInputRows": 10, "timestamp": began, "sources": []}
        self.recentProgress.append({**done, "durationMs": {"triggerExecution": 1000 * took_s}})


@pytest.fixture
def query() -> Query:
    return Query()


@pytest.fixture
def attached(query: Query, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> QueryMonitor:
    monkeypatch.setattr(
        attached_executors,
        "executors",
        lambda spark: {"1": Executor(id="1", host="h", profile=0, busy_s=7.0, tasks=3)},
    )
    monkeypatch.setattr(attached_query, "work", lambda spark, run_id, **_: Work(0.0, 0, -1))
    nobody: Any = None
    stands_for: Any = query
    return QueryMonitor(ExecutorActuator(nobody), [stands_for], slots=1)


def test_an_attached_query_that_hangs_grows_stale_and_its_silence_is_not_idleness(
    attached: QueryMonitor, query: Query, clock: Clock
) -> None:
    clock.now_s += INTERVAL_S
    query.finish()
    assert ages(attached.observe()) == {"query": 0}
    for interval in range(1, 5):
        clock.now_s += INTERVAL_S
        seen = attached.observe()
        assert ages(seen) == {"query": INTERVAL_S * interval}
        assert one(seen, "query").utilisation is None
    assert vetoes(seen, "query") == ["the last measurement is 20 s old, more than 15 s"]
    query.finish()
    clock.now_s += INTERVAL_S
    assert ages(attached.observe()) == {"query": 0}


def test_an_attached_query_without_input_is_measured_and_a_dead_one_is_not(
    attached: QueryMonitor, query: Query, clock: Clock
) -> None:
    query.has_data = False
    for _ in range(2):
        clock.now_s += INTERVAL_S
        seen = attached.observe()
    assert ages(seen) == {"query": 0}
    assert one(seen, "query").utilisation == 0
    query.isActive = False
    clock.now_s += INTERVAL_S
    assert ages(attached.observe()) == {"query": INTERVAL_S}


@pytest.mark.parametrize(
    ("every_s", "takes_s", "stays_s"),
    [(10.0, 2.0, 7.0), (2.0, 2.0, 3.0)],  # a slow trigger; batch after batch
)
def test_a_tuple_waits_half_the_time_between_two_batches_and_then_for_its_own(
    attached: QueryMonitor, query: Query, clock: Clock, every_s: float, takes_s: float, stays_s: float
) -> None:
    attached.observe()
    for number in range(4):
        query.finish(began_s=number * every_s, took_s=takes_s)
        clock.now_s += every_s
        (seen,) = attached.observe().operators
    assert seen.response_time_s == pytest.approx(stays_s)
    assert (seen.batch_s, seen.batch_tuples) == (takes_s, 10)


def test_what_is_still_inside_is_known_with_its_age(pipeline: Pipeline) -> None:
    pipeline.arrive(10)
    pipeline.after(2.0)
    pipeline.arrive(5)
    pipeline.after(3.0)
    assert sorted(pipeline.monitor.unfinished()) == [(3.0, 5), (5.0, 10)]
    pipeline.finish(reached=1)
    pipeline.after(1.0)
    assert pipeline.monitor.unfinished() == [(4.0, 5)]


def test_a_clock_that_is_set_back_stops_no_time(pipeline: Pipeline) -> None:
    """What is decided has a clock that does not jump; what waits is compared with stamps on the wall."""
    pipeline.arrive(10)
    before = pipeline.after(INTERVAL_S)
    pipeline.clock.now_s -= 3600
    pipeline.clock.behind_s += 3600
    pipeline.arrive(10)
    after = pipeline.after(INTERVAL_S)
    assert after.at_s == before.at_s + INTERVAL_S
    assert after.source_rate == before.source_rate


def test_what_was_waiting_when_the_driver_died_is_waiting_still(tmp_path: Path, clock: Clock) -> None:
    dead = Pipeline(tmp_path, clock)
    for _ in range(5):
        dead.arrive(100)
    assert one(dead.after(INTERVAL_S), "first").backlog == 500
    again = Pipeline(tmp_path, clock, epoch=dead.epoch)
    seen = one(again.after(INTERVAL_S), "first")
    assert seen.backlog == 500
    assert seen.arrival_rate == 0  # it came before
    assert seen.response_time_s is not None
    assert seen.response_time_s >= INTERVAL_S
    assert again.monitor.unfinished() == dead.monitor.unfinished() != []
