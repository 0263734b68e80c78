"""What is seen of queries that Penstock did not build: arrivals, lag, work, and how much can be shared."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError

from penstock.domain.observation import OperatorObservation
from penstock.runtimes.spark import attached_executors, attached_query
from penstock.runtimes.spark.attached_executors import ExecutorActuator
from penstock.runtimes.spark.attached_query import QueryMonitor
from penstock.runtimes.spark.executors import Executor
from penstock.runtimes.spark.query_work import Work, last_job, work, worked


@dataclass
class Clock:
    now_s: float = 1000.0

    def time(self) -> float:
        return self.now_s


class Query(SimpleNamespace):
    """Stands for a streaming query whose source counts rows by its offsets."""

    def __init__(self, run: str) -> None:
        super().__init__(runId=run, recentProgress=[], isActive=True, status={"isDataAvailable": True})
        self.taken, self.batches = 0, 0

    def finish(self, *, began_s: float, took_s: float, rows: int, behind: int | None = 0) -> None:
        begin, self.taken = self.taken, self.taken + rows
        source = {"startOffset": str(begin), "endOffset": str(self.taken), "numInputRows": rows}
        source["latestOffset"] = "None" if behind is None else str(self.taken + behind)
        self.recentProgress.append(
            {
                "batchId": self.batches,
                "numInputRows": rows,
                "timestamp": datetime.fromtimestamp(began_s, UTC).isoformat(),
                "durationMs": {"triggerExecution": 1000 * took_s},
                "sources": [source],
            }
        )
        self.batches += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (attached_query, attached_executors):
        monkeypatch.setattr(module, "time", clock)
    there = {"1": Executor(id="1", host="h", profile=0, busy_s=7.0, tasks=3)}
    monkeypatch.setattr(attached_executors, "executors", lambda spark: there)
    return clock


@pytest.fixture
def works(monkeypatch: pytest.MonkeyPatch) -> dict[str, Work]:
    """What the stages of every query have done at every look, by run."""
    works: dict[str, Work] = {}
    none = Work(0.0, 0, -1)
    monkeypatch.setattr(attached_query, "work", lambda spark, run_id, **_: works.get(run_id, none))
    monkeypatch.setattr(attached_query, "last_job", lambda spark, run_id, **_: -1)
    return works


def watching(*queries: Query, slots: int = 1) -> QueryMonitor:
    nobody: Any = None
    given: list[Any] = list(queries)
    return QueryMonitor(ExecutorActuator(nobody), given, slots=slots)


def look(monitor: QueryMonitor, clock: Clock, seconds: float = 10.0) -> OperatorObservation:
    clock.now_s += seconds
    (seen,) = monitor.observe().operators
    return seen


def test_arrivals_are_what_was_taken_and_what_the_lag_has_grown_by(
    clock: Clock, works: dict[str, Work]
) -> None:
    query = Query("a")
    monitor = watching(query)
    query.finish(began_s=1000, took_s=1, rows=50, behind=100)
    look(monitor, clock)
    for began_s in (1002, 1004):  # 50 taken every two seconds, and 20 more are left each time
        query.finish(began_s=began_s, took_s=2, rows=50, behind=100 + 10 * (began_s - 1000))
    seen = look(monitor, clock)
    assert seen.arrival_rate == (50 + 50 + 40) / 4
    assert seen.backlog == 140


def test_a_source_without_offsets_has_what_was_taken_and_no_backlog(
    clock: Clock, works: dict[str, Work]
) -> None:
    query = Query("a")
    monitor = watching(query)
    for began_s in (1000, 1002):
        query.finish(began_s=began_s, took_s=2, rows=50, behind=None)
    look(monitor, clock)
    query.finish(began_s=1004, took_s=2, rows=50, behind=None)
    seen = look(monitor, clock)
    assert (seen.arrival_rate, seen.backlog) == (25, None)


def test_a_batch_longer_than_the_interval_is_no_burst(clock: Clock, works: dict[str, Work]) -> None:
    query = Query("a")
    monitor = watching(query)
    query.finish(began_s=1000, took_s=40, rows=400)
    look(monitor, clock, 40)
    query.finish(began_s=1040, took_s=40, rows=400)
    assert look(monitor, clock).arrival_rate == 10


def test_batches_from_before_it_was_attached_do_not_count(clock: Clock, works: dict[str, Work]) -> None:
    query = Query("a")
    for began_s in (0, 10):
        query.finish(began_s=began_s, took_s=2, rows=1_000)
    monitor = watching(query)
    assert look(monitor, clock).response_time_s is None
    query.finish(began_s=20, took_s=2, rows=100)
    assert look(monitor, clock).arrival_rate == 10


def test_reports_that_spark_did_not_keep_make_no_lull(clock: Clock, works: dict[str, Work]) -> None:
    query = Query("a")
    monitor = watching(query)
    query.finish(began_s=1000, took_s=0.1, rows=50)
    look(monitor, clock)
    for number in range(1, 101):  # 20 tuples/s, and the lag grows by 10 a second
        query.finish(began_s=1000 + number / 10, took_s=0.1, rows=2, behind=number)
    del query.recentProgress[:-40]
    assert look(monitor, clock).arrival_rate == pytest.approx(30)
    assert max(stay_s for stay_s, _ in monitor.finished()) < 6  # 5 s behind others: the gap was no wait


def test_a_tuple_behind_others_waits_until_they_are_taken(clock: Clock, works: dict[str, Work]) -> None:
    query = Query("a")
    monitor = watching(query)
    for number in range(3):
        query.finish(began_s=1000 + 2 * number, took_s=2, rows=50, behind=500)
        seen = look(monitor, clock)
    assert seen.response_time_s == 500 / 25 + 1 + 2  # at 25 taken a second
    clock.now_s = 1010
    assert monitor.unfinished() == [(6.0, 500)]


def test_a_query_without_input_has_no_arrivals_and_the_next_ones_are_not_spread_over_that_time(
    clock: Clock, works: dict[str, Work]
) -> None:
    query = Query("a")
    monitor = watching(query)
    query.finish(began_s=1000, took_s=1, rows=50)
    look(monitor, clock)
    query.status["isDataAvailable"] = False
    for _ in range(30):
        assert look(monitor, clock).arrival_rate == 0
    query.status["isDataAvailable"] = True
    query.finish(began_s=clock.now_s + 5, took_s=1, rows=150)
    assert look(monitor, clock).arrival_rate == 10  # since the look before the last


def test_the_work_in_tasks_is_shared_by_all_that_an_executor_runs_at_a_time(
    clock: Clock, works: dict[str, Work]
) -> None:
    query = Query("a")
    monitor = watching(query, slots=2)
    query.finish(began_s=1000, took_s=1, rows=50)
    works["a"] = Work(busy_s=3.0, tasks=7, last_job=1)
    seen = look(monitor, clock)
    assert seen.service_time_s == 3.0 / 2 / 50
    assert seen.useful_replicas == 4  # seven tasks on executors of two
    query.finish(began_s=1001, took_s=1, rows=0)
    works["a"] = Work(busy_s=0.1, tasks=1, last_job=2)  # of an empty batch
    assert look(monitor, clock).useful_replicas == 4


@dataclass
class Jobs:
    """Stands for Spark's account of a query's jobs: each has a stage that works and one that is skipped."""

    batches: dict[int, int | None]  # by job; None: the user has described it
    gone: set[int] = field(default_factory=set)  # stages
    gone_jobs: set[int] = field(default_factory=set)
    worked_s: dict[int, float] = field(default_factory=dict)  # by job; one second unless it stands here

    @property
    def session(self) -> Any:
        session = MagicMock()
        tracker = session.sparkContext.statusTracker()
        tracker.getJobIdsForGroup.side_effect = lambda run: sorted(self.batches, reverse=True)
        store = session.sparkContext._jsc.sc().statusStore()
        store.job.side_effect, store.lastStageAttempt.side_effect = self._job, self._stage
        return session

    def _job(self, number: int) -> Any:
        if number in self.gone_jobs:
            raise Py4JError("java.util.NoSuchElementException")
        job, batch = MagicMock(), self.batches[number]
        job.description().get.return_value = "mine" if batch is None else f"id = a<br/>batch = {batch}"
        job.stageIds().size.return_value = 2
        job.stageIds().apply.side_effect = lambda index: 2 * number + index
        return job

    def _stage(self, number: int) -> Any:
        if number in self.gone:
            raise Py4JError(f": java.util.NoSuchElementException: No stage with id {number}")
        stage, works = MagicMock(), number % 2 == 0
        stage.executorRunTime.return_value = 1000 * self.worked_s.get(number // 2, 1) if works else 0
        stage.numCompleteTasks.return_value = 4 if works else 0
        return stage


@pytest.mark.parametrize("described", [False, True])
def test_the_work_of_batches_before_it_was_attached_is_not_counted(clock: Clock, described: bool) -> None:
    jobs, query = Jobs({}), Query("a")

    def finish(began_s: int) -> None:
        jobs.batches[began_s] = None if described else query.batches
        query.finish(began_s=began_s, took_s=1, rows=10)

    for began_s in range(18):
        finish(began_s)
    queries: list[Any] = [query]
    monitor = QueryMonitor(ExecutorActuator(jobs.session), queries, slots=1)
    for began_s in (18, 19):
        finish(began_s)
    assert look(monitor, clock).service_time_s == 2.0 / 20


def working(jobs: Jobs, query: Query, rows: int, worked_s: float) -> None:
    """A batch ends, of one job."""
    number = query.batches
    jobs.batches[number], jobs.worked_s[number] = number, worked_s
    query.finish(began_s=number, took_s=1, rows=rows)


def attached(jobs: Jobs, query: Query) -> QueryMonitor:
    queries: list[Any] = [query]
    return QueryMonitor(ExecutorActuator(jobs.session), queries, slots=1)


@pytest.mark.parametrize("seen_before", [20, 0])
def test_what_tasks_take_whatever_is_in_them_is_no_time_of_a_tuple(clock: Clock, seen_before: int) -> None:
    jobs, query, sizes = Jobs({}), Query("a"), (40, 80, 120, 160)
    monitor = None if seen_before else attached(jobs, query)
    for number in range(21):
        if number == seen_before:
            monitor = monitor or attached(jobs, query)  # and it looks back
        working(jobs, query, sizes[number % 4], 0.3 + 0.02 * sizes[number % 4])
        if monitor is not None:
            seen = look(monitor, clock, 1.0)
    assert seen.service_time_s == pytest.approx(0.02)
    assert seen.batch_tasks_s == pytest.approx(0.3)


def test_it_is_known_through_a_lull_and_told_anew_when_it_is_otherwise(clock: Clock) -> None:
    jobs, query, sizes = Jobs({}), Query("a"), (40, 80, 120, 160)
    monitor = attached(jobs, query)
    for number in range(20):
        working(jobs, query, sizes[number % 4], 0.3 + 0.02 * sizes[number % 4])
        look(monitor, clock, 1.0)
    for number in range(60):
        working(jobs, query, 1, 0.29 if number % 2 else 0.33)
        assert look(monitor, clock, 1.0).service_time_s == pytest.approx(0.02)
    for _ in range(60):
        working(jobs, query, 100, 6.0)
        seen = look(monitor, clock, 1.0)
    assert seen.service_time_s == pytest.approx((6.0 - 0.31) / 99, rel=0.02)


def test_what_no_batch_is_like_any_more_is_forgotten(clock: Clock) -> None:
    jobs, query = Jobs({}), Query("a")
    for number in range(30):  # while it was slow
        working(jobs, query, 50 + 50 * (number % 3), 8.0 + 0.08 * (number % 3) * 50)
    monitor = attached(jobs, query)
    for _ in range(50):
        working(jobs, query, 100, 2.0)
        seen = look(monitor, clock, 1.0)
    assert (seen.service_time_s, seen.batch_tasks_s) == (0.02, None)


def test_a_batch_without_rows_is_no_work_on_tuples(clock: Clock) -> None:
    jobs, query = Jobs({}), Query("a")
    monitor = attached(jobs, query)
    working(jobs, query, 100, 2.0)
    working(jobs, query, 0, 5.0)
    assert look(monitor, clock, 2.0).service_time_s == 2.0 / 100


def test_work_is_that_of_the_batches_whose_rows_are_known() -> None:
    jobs = Jobs({1: 0, 2: 1, 3: 2, 4: 3, 5: None, 6: 4})
    assert work(jobs.session, "a", after_job=1, first=2, last=3) == Work(3.0, 4, 5, {2: 1.0, 3: 1.0})
    assert last_job(jobs.session, "a", batch=2) == 5  # it may be of any batch
    del jobs.batches[5]
    assert last_job(jobs.session, "a", batch=2) == 3
    assert last_job(jobs.session, "a", batch=-1) == -1


def test_jobs_and_stages_that_spark_did_not_keep_do_not_end_the_controller() -> None:
    jobs = Jobs({1: 0, 2: 0, 3: 0}, gone={2, 3, 5}, gone_jobs={3})
    assert work(jobs.session, "a", after_job=-1, first=0, last=0) == Work(1.0, 4, 2, {0: 1.0})
    assert last_job(jobs.session, "a", batch=0) == 2


def test_other_trouble_with_spark_is_not_taken_for_that() -> None:
    session = Jobs({1: 0}).session
    session.sparkContext._jsc.sc().statusStore().job.side_effect = Py4JError("no connection")
    with pytest.raises(Py4JError, match="no connection"):
        work(session, "a", after_job=-1, first=0, last=0)


def test_only_stages_that_do_a_good_part_of_the_work_say_how_many_can_share_it() -> None:
    assert worked([(9.0, 8), (0.5, 200)], 3) == Work(9.5, 8, 3)
    assert worked([(9.0, 8), (9.0, 20)], 3).tasks == 20
    assert worked([], 3) == Work(0, 0, 3)


def test_of_several_queries_the_slowest_counts_and_their_load_adds_up(
    clock: Clock, works: dict[str, Work]
) -> None:
    slow, quick = Query("slow"), Query("quick")
    monitor = watching(slow, quick)
    works |= {"slow": Work(6.0, 4, 1), "quick": Work(2.0, 2, 2)}
    for number in range(2):
        slow.finish(began_s=1000 + 4 * number, took_s=4, rows=40, behind=5)
        quick.finish(began_s=1000 + 2 * number, took_s=1, rows=60, behind=0)
        seen = look(monitor, clock)
    assert seen.arrival_rate == 10 + 30
    assert seen.response_time_s == 4 * 5 / 40 + 2 + 4
    assert (seen.batch_s, seen.batch_tuples) == (4, 160)  # 40 of its own, while 120 of the other came
    assert (seen.backlog, seen.useful_replicas, seen.service_time_s) == (5, 6, 8.0 / 100)
    assert sorted(monitor.finished())[-1] == (6.5, 40)
    slow.isActive = False
    quick.finish(began_s=1004, took_s=1, rows=60)
    seen = look(monitor, clock)
    assert (seen.response_time_s, seen.arrival_rate) == (2, 30)  # of the one that still runs


def test_while_one_of_several_queries_hangs_arrivals_are_unknown_and_the_measurement_is_old(
    clock: Clock, works: dict[str, Work]
) -> None:
    hangs, works_on = Query("hangs"), Query("works")
    monitor = watching(hangs, works_on)
    for number in range(3):
        works_on.finish(began_s=1000 + number, took_s=1, rows=10)
        seen = look(monitor, clock)
    assert seen.arrival_rate is None
    assert seen.at_s == 1000
