"""A run of weeks: as much memory as one of hours, and figures of all of it.

The straightforward computation, with everything in lists, is the independent reference.
"""

import pickle
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
from pyarrow import parquet

from penstock.control.safety_settings import FULL_HOST
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.live import kept as kept_module
from penstock.live import metrics_file
from penstock.live.background_tuning import MONITORED
from penstock.live.controlling import Controlling
from penstock.live.fixed_replicas import Moved, late_in
from penstock.live.kept import COURSE, LATEST_CHANGES, LATEST_INTERVALS, Kept
from penstock.live.metrics_file import MetricsFolder
from penstock.live.record import Interval, Summary, late_pct, row
from penstock.live.settings import LiveSettings, controller_for
from penstock.live.tally import Tally
from penstock.live.thinned import Thinned
from penstock.perf.histogram import MOST_BUCKETS, Histogram
from penstock.reconfigure.method import Method
from penstock.reconfigure.words import Change, Ending, Record
from penstock.reports.live_run import page_of
from penstock.runtimes.spark.measures import waits
from penstock.runtimes.spark.topology import App

TYPES = (NodeType(name="slow", speedup=1.0, price=1.0), NodeType(name="fast", speedup=2.0, price=2.5))
BEGAN_S, OBJECTIVE_S = 1_000.0, 5.0
Left = list[tuple[float, int]]


def interval(number: int, rng: np.random.Generator) -> Interval:
    """Anything may be unknown."""

    def maybe(value: float) -> float | None:
        return None if rng.random() < 0.2 else float(value)

    at_s = BEGAN_S + 5.0 * (number + 1)
    operators = tuple(
        OperatorObservation(
            operator=name,
            at_s=at_s,
            replicas=Replicas((int(rng.integers(1, 5)), int(rng.integers(0, 2)))),
            arrival_rate=maybe(20.0),
            response_time_s=maybe(rng.lognormal(1.0)),
            utilisation=None,
        )
        for name in ("lookup", "score")
    )
    seen = ApplicationObservation(
        at_s=at_s,
        response_time_s=maybe(rng.lognormal(1.5)),
        operators=operators,
        source_rate=maybe(rng.uniform(10, 100)),
        host_loads=None if rng.random() < 0.3 else {"a": float(rng.uniform(0.8, 1.0)), "b": 1.0},
    )
    changed = (f"lookup: change {number}",) if rng.random() < 0.1 else ()
    return Interval(seen=seen, reasons=(f"reason {number}",), changed=changed, spares=int(rng.integers(0, 2)))


def record(number: int, rng: np.random.Generator) -> Record:
    return Record(
        operator="lookup",
        method=Method.LIVE,
        change=Change(partitions=number + 1),
        outcome=list(Ending)[int(rng.integers(len(Ending)))],
        granted_at_s=BEGAN_S + number,
        ended_at_s=BEGAN_S + number + 1,
        node_ready_at_s=None,
        first_task_at_s=None,
        downtime_s=float(rng.uniform(0, 2)),
        state_moved_bytes=None,
        repair=bool(rng.random() < 0.3),
    )


@dataclass(frozen=True, kw_only=True)
class Run:
    """All of it, in lists."""

    intervals: Sequence[Interval]
    left: Left
    unfinished: Left
    records: Sequence[Record]

    def reference(self, seconds: float) -> Summary:
        """As it was before intervals were told one by one."""
        replica_s, cost, before_s = 0.0, 0.0, BEGAN_S
        for one in self.intervals:
            length_s = max(one.seen.at_s - before_s, 0.0)
            before_s = one.seen.at_s
            replica_s += one.spares * length_s
            cost += one.spares * TYPES[0].price * length_s / 3600
            for operator in one.seen.operators:
                replica_s += operator.replicas.total * length_s
                prices = zip(operator.replicas.counts, TYPES, strict=True)
                cost += sum(count * kind.price for count, kind in prices) * length_s / 3600
        everything = (*self.left, *self.unfinished)
        overall = waits([(0.0, tuple((-took_s, tuples) for took_s, tuples in everything))])
        changes = [one for one in self.records if one.outcome in (Ending.DONE, Ending.PARTLY)]
        loads = [min(one.seen.host_loads.values()) for one in self.intervals if one.seen.host_loads]
        return Summary(
            application="a",
            policy="p",
            finished=True,
            seconds=seconds,
            tuples=sum(tuples for _, tuples in self.left),
            unfinished=sum(tuples for _, tuples in self.unfinished),
            violations_pct=late_pct(self.intervals, OBJECTIVE_S),
            violations_after_first_minute_pct=late_pct(
                [one for one in self.intervals if one.seen.at_s - BEGAN_S > 60], OBJECTIVE_S
            ),
            response_time_p50_s=overall.p50_s,
            response_time_p95_s=overall.p95_s,
            response_time_p99_s=overall.p99_s,
            average_replicas=replica_s / (before_s - BEGAN_S) if before_s > BEGAN_S else 0.0,
            replica_seconds=replica_s,
            cost=cost,
            reconfigurations=sum(1 for one in changes if not one.repair),
            downtime_pct=100 * sum(one.downtime_s for one in self.records) / seconds,
            replica_changes=sum(
                now.replicas != before.replicas
                for first, second in pairwise(self.intervals)
                for before, now in zip(first.seen.operators, second.seen.operators, strict=True)
            ),
            host_full_pct=100 * sum(load >= FULL_HOST for load in loads) / len(loads) if loads else None,
        )

    def tallied(self, seconds: float) -> Summary:
        tally = Tally(objective_s=OBJECTIVE_S, node_types=TYPES, began_s=BEGAN_S)
        for index, one in enumerate(self.intervals):
            tally.interval(one)
            tally.left(self.left[index :: len(self.intervals)])
        if not self.intervals:
            tally.left(self.left)
        for change in self.records:
            tally.record(change)

        def asked() -> Summary:
            return tally.summary(
                application="a", policy="p", finished=True, seconds=seconds, unfinished=self.unfinished
            )

        assert asked() == asked(), "asking changes nothing"
        return asked()


def made_up(seed: int, intervals: int) -> Run:
    rng = np.random.default_rng(seed)

    def took(count: int) -> Left:
        return [(float(rng.lognormal(0.0, 1.5)), int(rng.integers(0, 50))) for _ in range(count)]

    return Run(
        intervals=[interval(number, rng) for number in range(intervals)],
        left=took(20 * intervals),
        unfinished=took(3),
        records=[record(number, rng) for number in range(intervals // 10)],
    )


@pytest.mark.parametrize("intervals", [0, 1, 5, 13, 400])
def test_figures_told_one_by_one_are_those_of_everything_at_once(intervals: int) -> None:
    run = made_up(intervals, intervals)
    expected, found = asdict(run.reference(3_000.0)), asdict(run.tallied(3_000.0))
    for name, value in expected.items():
        if name.startswith("response_time_p"):
            assert found[name] == pytest.approx(value, rel=0.01)
        elif isinstance(value, float):
            assert found[name] == pytest.approx(value, rel=1e-12), name
        else:
            assert found[name] == value, name


@pytest.mark.parametrize("seed", range(5))
def test_percentiles_are_less_than_one_per_cent_off(seed: int) -> None:
    rng = np.random.default_rng(seed)
    taken = [(float(10 ** rng.uniform(-3, 4)), int(rng.integers(1, 100))) for _ in range(3_000)]
    exact = waits([(0.0, tuple((-seconds, tuples) for seconds, tuples in taken))])
    histogram = Histogram()
    for seconds, tuples in taken:
        histogram.add(seconds, tuples)
    for share, expected in ((0.50, exact.p50_s), (0.95, exact.p95_s), (0.99, exact.p99_s)):
        found = histogram.percentile(share)
        assert found is not None
        assert expected is not None
        assert abs(found - expected) < 0.01 * expected


def test_percentiles_of_what_is_alike_are_exact_and_of_nothing_unknown() -> None:
    assert Histogram().percentile(0.5) is None
    one = Histogram()
    one.add(2.0, 30)
    one.add(0.0, 10)
    one.add(7.0, 0)  # no tuples at all
    assert [one.percentile(share) for share in (0.2, 0.5, 0.99)] == [0.0, 2.0, 2.0]


def test_a_histogram_is_bounded_whatever_it_is_told() -> None:
    histogram = Histogram()
    for exponent in np.linspace(-30, 30, 20_000):
        histogram.add(float(10**exponent), 1)
    assert len(histogram) <= MOST_BUCKETS == 2_546


def test_two_hundred_thousand_intervals_take_no_more_memory_than_twenty_thousand() -> None:
    kept = Kept(objective_s=OBJECTIVE_S, node_types=TYPES, began_s=BEGAN_S)
    templates = made_up(7, 50)
    sizes: dict[int, int] = {}
    for number in range(1, 200_001):
        one = templates.intervals[number % 50]
        changed = (f"lookup: change {number:07d}",) if number % 10 == 0 else ()
        seen = one.seen._replace(at_s=BEGAN_S + number)
        kept.interval(Interval(seen=seen, reasons=(f"reason {number:07d}",), changed=changed))
        kept.left([(0.001 * (number % 9_000), 3)])
        if number % 10 == 0:
            kept.record(templates.records[number % 5])
        if number in {20_000, 200_000}:
            sizes[number] = len(pickle.dumps(vars(kept)))  # all that it holds
    assert sizes[200_000] < 1.2 * sizes[20_000]
    assert len(kept.latest) == LATEST_INTERVALS
    assert len(kept.records) == len(kept.changing) == LATEST_CHANGES
    assert len(kept.course) <= COURSE
    assert not kept.has_all
    assert (kept.all_records, kept.all_changing, kept.tally.intervals) == (20_000, 20_000, 200_000)


def extremes(moments: Sequence[tuple[int, float | None, float]]) -> tuple[float, ...]:
    first, second = [one for _, one, _ in moments if one is not None], [one for _, _, one in moments]
    return min(first), max(first), min(second), max(second)


def test_a_short_course_is_all_of_it_and_a_long_one_keeps_every_peak_and_trough() -> None:
    rng = np.random.default_rng(3)
    course = Thinned[tuple[int, float | None, float]](300, lambda moment: moment[1:])
    walk = np.cumsum(rng.normal(size=50_000))
    moments = [
        (at, None if rng.random() < 0.3 else float(level), float(rng.random()))
        for at, level in enumerate(walk)
    ]
    for at, moment in enumerate(moments, 1):
        course.add(moment)
        assert len(course) <= 300
        if at == 300:
            assert list(course) == moments[:300]
            assert not course.is_thinned
    kept = list(course)
    assert course.is_thinned
    assert kept == sorted(kept)
    assert set(kept) <= set(moments)
    assert (kept[0], kept[-1]) == (moments[0], moments[-1])
    length = course._length
    for begin in range(0, 50_000 - length + 1, length):
        inside = [one for one in kept if begin <= one[0] < begin + length]
        assert extremes(inside) == extremes(moments[begin : begin + length])


def test_what_was_lowest_and_highest_of_all_stays_whatever_comes_after() -> None:
    course = Thinned[float](200, lambda value: (value,))
    for at in range(100_000):
        course.add({777: 9.0, 50_001: -9.0}.get(at, at % 7 / 7))
    assert {9.0, -9.0} <= set(course)
    assert len(course) <= 200


def parts(out: Path) -> dict[str, int]:
    """Rows by file, of all that is in the folder."""
    return {path.name: parquet.read_table(path).num_rows for path in sorted((out / "metrics").iterdir())}


def test_metrics_are_written_in_parts_while_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_file, "_ROWS", 10)
    run = made_up(1, 47).intervals
    with MetricsFolder(tmp_path) as metrics:
        for number, one in enumerate(run[:25], 1):
            metrics.interval(one, BEGAN_S)
            assert sum(parts(tmp_path).values()) == number // 10 * 10
    with MetricsFolder(tmp_path) as metrics:  # it goes on
        for one in run[25:]:
            metrics.interval(one, BEGAN_S)
    rows = [10, 10, 5, 10, 10, 2]
    assert parts(tmp_path) == {f"part-{number:03d}.parquet": count for number, count in enumerate(rows)}
    whole = parquet.read_table(tmp_path / "metrics")
    assert whole.to_pylist() == [row(one, BEGAN_S) for one in run]


def test_a_part_in_which_nothing_was_measured_has_the_same_columns_as_the_others(tmp_path: Path) -> None:
    """Spark takes the types of a folder from one of its files."""
    measured, silent = made_up(1, 1).intervals[0], interval(1, np.random.default_rng(1))
    blind = tuple(one._replace(arrival_rate=None, response_time_s=None) for one in silent.seen.operators)
    seen = ApplicationObservation(at_s=silent.seen.at_s, response_time_s=None, operators=blind)
    for one in (Interval(seen=seen, reasons=(), changed=()), measured):
        with MetricsFolder(tmp_path) as metrics:
            metrics.interval(one, BEGAN_S)
    first, second = (parquet.read_table(path).schema for path in sorted((tmp_path / "metrics").iterdir()))
    assert first.equals(second)
    types = {field.name: str(field.type) for field in first}
    assert (types["source_rate"], types["reasons"], types["lookup.replicas"]) == ("double", "string", "int64")
    assert types["score.utilisation"] == "double"


def full(_: int) -> None:
    raise OSError(28, "No space left on device")


def test_a_run_that_fails_leaves_its_metrics_and_a_part_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made_up(1, 3).intervals
    with pytest.raises(ZeroDivisionError):
        failing(tmp_path, run[0])
    assert list(parts(tmp_path).values()) == [1]
    metrics = MetricsFolder(tmp_path)
    metrics.interval(run[1], BEGAN_S)
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(InputError, match=r"part-001\.parquet: cannot write: No space left"):
            metrics.write()
        with pytest.raises(ZeroDivisionError):  # why it failed is told
            failing(tmp_path, run[2])
        assert list(parts(tmp_path).values()) == [1]
    metrics.interval(run[2], BEGAN_S)
    metrics.write()  # what did not fit is still known
    assert list(parts(tmp_path).values()) == [1, 2]


def failing(out: Path, one: Interval) -> None:
    with MetricsFolder(out) as metrics:
        metrics.interval(one, BEGAN_S)
        raise ZeroDivisionError


@dataclass(frozen=True)
class Ended:
    kept: Kept
    objective_s: float = OBJECTIVE_S


def report(kept: Kept) -> str:
    said = kept.tally.summary(application="a", policy="p", finished=True, seconds=1e6)
    return page_of(Ended(kept), said, "a", {})


def test_the_report_of_a_long_run_has_the_latest_and_says_how_many_were_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, most in (("COURSE", 200), ("LATEST_INTERVALS", 40), ("LATEST_CHANGES", 3)):
        monkeypatch.setattr(kept_module, name, most)
    long, short = (Kept(objective_s=OBJECTIVE_S, node_types=TYPES, began_s=BEGAN_S) for _ in range(2))
    run = made_up(5, 2_000)
    highest = max(one.seen.source_rate or 0.0 for one in run.intervals)
    for one in run.intervals:
        long.interval(one)
    for change in run.records:
        long.record(change)
    for one in run.intervals[:5]:
        short.interval(one)
    page = report(long)
    before = sum(1 for one in run.intervals if one.changed) - 3
    assert f"The latest; {len(run.records) - 3:,} more before them are in the journal." in page
    assert f"The latest; {before:,} more before them are in the journal." in page
    assert "The latest 40 decisions, and why" in page
    assert "reason 1999" in page
    assert "reason 1959" not in page
    assert f"{len(long.course)} of 2,000 intervals" in page
    assert repr(highest) in page
    assert "reason 4" in report(short)
    assert "Every decision, and why" in report(short)
    assert "more before them" not in report(short)
    assert "intervals: those" not in report(short)


def test_intervals_are_judged_as_one_by_one() -> None:
    """What fixed replicas would have done: against looking at everything for every interval."""
    rng = np.random.default_rng(2)
    entered = np.sort(rng.uniform(0, 500, size=700))
    ended = [Moved(float(at + rng.lognormal(1.0)), float(at), float(rng.integers(0, 4))) for at in entered]
    times = [(5.0 * number, 5.0 * number + 5.0) for number in range(120)]

    def late(begin_s: float, end_s: float, objective_s: float) -> bool:
        out = [one for one in ended if begin_s < one.at_s <= end_s and one.tuples]
        if out:
            total = sum(one.tuples for one in out)
            return sum((one.at_s - one.entered_s) * one.tuples for one in out) / total > objective_s
        inside = [one.entered_s for one in ended if one.entered_s < end_s < one.at_s and one.tuples]
        return bool(inside) and end_s - min(inside) > objective_s

    for objective_s in (0.5, 3.0, 5.0):
        assert late_in(ended, times, objective_s) == [late(*time, objective_s) for time in times]
    silent = [(600.0, 605.0)]  # and where nothing comes out for a while
    assert late_in([Moved(700.0, 590.0, 1.0)], silent, 5.0) == [True]
    assert late_in([Moved(700.0, 604.0, 1.0)], silent, 5.0) == [False]


@dataclass
class Unmeasurable:
    """An application of which nothing can be measured, ever."""

    at_s: float = 0.0

    def observe(self) -> ApplicationObservation:
        self.at_s += 1.0
        one = OperatorObservation(
            operator="one",
            at_s=self.at_s,
            replicas=Replicas((1,)),
            arrival_rate=None,
            response_time_s=None,
            utilisation=None,
        )
        return ApplicationObservation(at_s=self.at_s, response_time_s=None, operators=(one,))


def test_a_controller_that_never_gets_its_model_does_not_remember_all_it_has_seen(tmp_path: Path) -> None:
    app = App("one", objective=Objective(response_time_s=6))
    app.sink("sink", app.operator("one", lambda frame: frame, app.source("source", schema="x long")))
    spec = controller_for(app, policy="ql-pds", application_policy="centralised")
    control = Controlling(spec, LiveSettings(out=tmp_path), MagicMock())
    seeing = Unmeasurable()
    for _ in range(MONITORED + 500):
        last = control.round(seeing, MagicMock())
    assert "measuring, before the first decision: " in last.reasons[0]  # it tries again every time
    assert len(control._measured) == MONITORED
    assert control._first is not None
    assert control._first.at_s == 1.0
