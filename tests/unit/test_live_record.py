"""What is left of a live run: figures that leave nothing out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.live.record import Interval, Summary, row
from penstock.live.run import LiveRun, RunError
from penstock.live.settings import LiveSettings, controller_for
from penstock.live.tally import Tally
from penstock.reports.live_summary import verdict
from penstock.runtimes.spark.topology import App


def of(
    *, done: list[tuple[float, int]], unfinished: list[tuple[float, int]], intervals: Sequence[Interval] = ()
) -> Summary:
    tally = Tally(objective_s=5.0, node_types=[NodeType(name="n", speedup=1.0, price=1.0)], began_s=0.0)
    tally.left(done)
    for one in intervals:
        tally.interval(one)
    return tally.summary(application="a", policy="p", finished=True, seconds=60.0, unfinished=unfinished)


def test_tuples_still_waiting_at_the_end_count_in_response_times_and_are_told() -> None:
    calm = of(done=[(1.0, 100)], unfinished=[])
    assert (calm.response_time_p50_s, calm.response_time_p99_s, calm.unfinished) == (1.0, 1.0, 0)
    behind = of(done=[(1.0, 100)], unfinished=[(40.0, 300)])
    assert behind.tuples == 100
    assert behind.unfinished == 300
    assert (behind.response_time_p50_s, behind.response_time_p99_s) == (40.0, 40.0)


def interval(at_s: float, *replicas: int) -> Interval:
    operators = tuple(
        OperatorObservation(
            operator=f"o{number}",
            at_s=at_s,
            replicas=Replicas((count,)),
            arrival_rate=None,
            response_time_s=None,
            utilisation=None,
        )
        for number, count in enumerate(replicas)
    )
    seen = ApplicationObservation(at_s=at_s, response_time_s=None, operators=operators)
    return Interval(seen=seen, reasons=(), changed=())


def test_changes_of_replicas_count_whoever_made_them() -> None:
    seen = [interval(5, 1, 1), interval(10, 1, 1), interval(15, 4, 2), interval(20, 3, 2), interval(25, 3, 2)]
    figures = of(done=[], unfinished=[], intervals=seen)
    assert figures.replica_changes == 3  # two operators at once, then one of them again
    assert figures.reconfigurations == 0
    assert figures.replica_seconds == 5 * (2 + 2 + 6 + 5 + 5)


def at_loads(*hosts: Mapping[str, float] | None) -> list[Interval]:
    return [
        Interval(
            seen=ApplicationObservation(
                at_s=5.0 * number, response_time_s=1.0, operators=(), host_loads=loads
            ),
            reasons=(),
            changed=(),
        )
        for number, loads in enumerate(hosts, start=1)
    ]


def test_a_host_is_full_in_the_intervals_in_which_no_host_had_cpu_left() -> None:
    run = at_loads({"a": 0.99}, {"a": 0.5}, None, {"a": 1.0, "b": 0.2}, {"a": 1.0, "b": 0.96})
    assert of(done=[], unfinished=[], intervals=run).host_full_pct == 50.0
    assert of(done=[], unfinished=[], intervals=at_loads(None)).host_full_pct is None
    assert row(run[3], 0.0)["host_load"] == 0.2
    assert row(run[2], 0.0)["host_load"] is None


def test_the_verdict_says_in_one_sentence_that_the_host_was_full_unless_that_was_seldom() -> None:
    def said(*hosts: Mapping[str, float]) -> str:
        return verdict(of(done=[], unfinished=[], intervals=at_loads(*hosts)), 5.0, {})

    kept = "Kept 100 % of the intervals inside 5 s."
    assert said({"a": 1.0}, {"a": 1.0}, {"a": 0.5}, {"a": 0.5}, {"a": 0.5}) == (
        f"{kept} The host's CPU was full in 40 % of the intervals: more replicas there cannot help; a faster "
        "or a second host would."
    )
    assert said({"a": 0.5}) == kept
    assert "full" not in said({"a": 1.0}, *[{"a": 0.5}] * 19)


def test_the_verdict_says_which_queries_failed_and_why() -> None:
    failed = replace(of(done=[], unfinished=[]), failures=("query 'a' failed 3 times, last: no disk",))
    assert verdict(failed, 5.0, {}) == "nothing was measured. Query 'a' failed 3 times, last: no disk."
    stopped = replace(failed, failures=("query 'a' failed once: no disk.",))
    assert verdict(stopped, 5.0, {}) == "nothing was measured. Query 'a' failed once: no disk."


def failing(tmp_path: Path, often: int, why: str) -> tuple[LiveRun, list[str], RunError | None]:
    """A run whose query fails so often, each time right after it was started; what is told, and its end."""
    app = App("one", objective=Objective(response_time_s=6))
    app.sink("sink", app.operator("first", lambda frame: frame, app.source("source", schema="x long")))
    told: list[str] = []
    live = LiveRun(app, controller_for(app), LiveSettings(out=tmp_path), lambda feeds: MagicMock())
    live.on_problem = told.append
    running, cluster, actuator = MagicMock(), MagicMock(), MagicMock(stranded={}, restating=())
    cluster.revive.return_value = None
    try:
        for _ in range(often):
            running.failed.return_value = {"first": why}
            live._look_after(running, cluster, actuator, MagicMock())
            running.failed.return_value = {}
            live._look_after(running, cluster, actuator, MagicMock())
    except RunError as end:
        return live, told, end
    return live, told, None


def test_a_query_that_fails_is_told_at_once_and_in_the_summary(tmp_path: Path) -> None:
    live, told, end = failing(tmp_path, 2, "no disk.")
    assert told == [
        f"query 'first' failed: no disk; it is started again in {pause_s} s" for pause_s in (1, 2)
    ]
    assert live._summary(1.0).failures == ("query 'first' failed 2 times, last: no disk.",)
    assert end is None


def test_a_query_that_failed_once_has_no_last_time(tmp_path: Path) -> None:
    live, _, _ = failing(tmp_path, 1, "no disk")
    assert live._summary(1.0).failures == ("query 'first' failed once: no disk",)


def test_of_the_failure_that_ends_the_run_nobody_says_that_the_query_is_started_again(tmp_path: Path) -> None:
    _, told, end = failing(tmp_path, 9, "no disk")
    assert [text.rpartition(" in ")[2] for text in told] == [f"{s} s" for s in (1, 2, 4, 8, 16, 32, 60)]
    assert str(end) == "query 'first' failed 8 times, last: no disk"
