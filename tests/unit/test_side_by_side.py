"""Runs side by side: what is said of them is what was measured, also where it is bad news."""

from dataclasses import replace

import pytest

from penstock.domain.deployment import Replicas
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.live.record import Interval, Summary
from penstock.live.side_by_side import (
    DYNAMIC_ALLOCATION,
    STATIC_PEAK,
    Comparison,
    Contender,
    Moment,
    moments_of,
)
from penstock.reports.side_by_side import cells, side_by_side_page


def contender(name: str, *, late_pct: float | None, cost: float, moments: int = 0) -> Contender:
    return Contender(
        summary=Summary(
            application="lookups",
            policy=name,
            finished=True,
            seconds=240.0,
            tuples=1000,
            unfinished=0,
            violations_pct=late_pct,
            violations_after_first_minute_pct=late_pct,
            response_time_p50_s=None if late_pct is None else 1.25,
            response_time_p95_s=None if late_pct is None else 3.5,
            response_time_p99_s=None,
            average_replicas=cost / 240,
            replica_seconds=cost,
            cost=1.0,
            reconfigurations=0,
            downtime_pct=0.0,
            replica_changes=7,
        ),
        moments=tuple(
            Moment(at_s=5.0 * number, rate=25.0, response_time_s=None, replicas=2)
            for number in range(moments)
        ),
    )


def beside(*others: Contender, late_pct: float | None = 5.0, cost: float = 700.0) -> Comparison:
    ours = contender("adaptive", late_pct=late_pct, cost=cost, moments=3)
    return Comparison(objective_s=5.0, contenders=(ours, *others))


PEAK = contender(STATIC_PEAK, late_pct=0.0, cost=1000.0)
DS2 = contender("ds2", late_pct=5.0, cost=700.0)
SPARKS_OWN = contender(DYNAMIC_ALLOCATION, late_pct=6.0, cost=1500.0)


def holds(comparison: Comparison) -> list[bool | None]:
    return [finding.holds for finding in comparison.findings()]


def test_everything_holds_up_to_the_very_limits() -> None:
    assert holds(beside(PEAK, DS2, SPARKS_OWN)) == [True, True, True, True]


@pytest.mark.parametrize(
    ("late_pct", "cost", "expected", "remark"),
    [
        (5.1, 700.0, [False, True, True, False], "over 5 % violations; more violations than ds2"),
        (5.0, 701.0, [True, False, True, False], "over 70 % of static-peak; dearer than ds2"),
        (6.1, 700.0, [False, True, False, False], "more violations than dynamic-allocation"),
        (4.0, 1600.0, [True, False, False, False], "dearer than dynamic-allocation"),
        (7.0, 1600.0, [False, False, False, False], "dearer and more violations than ds2"),
    ],
)
def test_what_does_not_hold_is_said_in_the_table_and_after_it(
    late_pct: float, cost: float, expected: list[bool], remark: str
) -> None:
    comparison = beside(PEAK, DS2, SPARKS_OWN, late_pct=late_pct, cost=cost)
    # In the order: violations, share of static peak, dynamic allocation, DS2.
    assert holds(comparison) == expected
    assert remark in cells(comparison, comparison.contenders[0])[-1]
    told = [finding.told for finding in comparison.findings()]
    assert [text.startswith("does not hold: ") for text in told] == [not one for one in expected]


def test_sentences_give_the_figures() -> None:
    violations, share, sparks_own, ds2 = beside(PEAK, DS2, SPARKS_OWN, late_pct=5.5, cost=650.0).findings()
    assert violations.told == (
        "does not hold: policy 'adaptive' was over 5 s in 5.5 % of the intervals after the first minute; "
        "it should be at most 5 %"
    )
    assert share.told == (
        "holds: policy 'adaptive' took 65 % of the replica-seconds of static-peak; it should be at most 70 %"
    )
    assert sparks_own.told == (
        "holds: policy 'adaptive' is no dearer than dynamic-allocation (650 against 1500 replica-seconds), "
        "at no more violations (5.5 against 6.0 %)"
    )
    assert ds2.told == (
        "does not hold: policy 'adaptive' is no dearer than ds2 (650 against 700 replica-seconds), "
        "at more violations (5.5 against 5.0 %)"
    )


def test_what_was_not_measured_is_not_known_and_never_counts_as_kept() -> None:
    blind = beside(PEAK, contender("ds2", late_pct=None, cost=1.0), late_pct=None)
    assert holds(blind) == [None, True, None]
    assert blind.cheapest is not None
    assert blind.cheapest.name == STATIC_PEAK  # ds2 is cheaper, and nobody knows how it did
    assert cells(blind, blind.contenders[2])[:4] == ("ds2", "-", "-", "-")
    assert "nothing measured" in cells(blind, blind.contenders[2])[-1]


def test_the_cheapest_is_that_of_those_with_few_violations() -> None:
    careless = contender("threshold-c", late_pct=5.1, cost=100.0)
    comparison = beside(PEAK, careless, late_pct=2.0, cost=900.0)
    assert [comparison.remarks(one)[:1] for one in comparison.contenders] == [
        ("cheapest with at most 5 % violations",),
        (),
        ("over 5 % violations",),
    ]
    assert beside(careless, late_pct=9.0).cheapest is None


def test_a_host_that_was_full_is_mentioned_unless_that_was_seldom() -> None:
    def remarks(full_pct: float | None) -> tuple[str, ...]:
        one = replace(PEAK, summary=replace(PEAK.summary, host_full_pct=full_pct))
        return beside(one, cost=1.0).remarks(one)

    assert remarks(40.0) == ("the host's CPU was full in 40 % of the intervals",)
    assert remarks(5.0) == remarks(None) == ()


def test_queries_that_failed_are_mentioned() -> None:
    failures = ("query 'a' failed once: no disk.", "query 'b' failed 2 times, last: no memory")
    one = replace(PEAK, summary=replace(PEAK.summary, failures=failures))
    comparison = beside(one, cost=1.0)
    assert comparison.remarks(one) == (
        "query 'a' failed once: no disk",
        "query 'b' failed 2 times, last: no memory",
    )
    assert cells(comparison, one)[-1].endswith("no disk; query 'b' failed 2 times, last: no memory")


def test_nothing_is_claimed_of_what_did_not_run() -> None:
    assert len(beside(late_pct=1.0).findings()) == 1  # no static peak, no rivals
    assert beside().of_peak_pct(DS2) is None
    assert Comparison(objective_s=5.0, contenders=(PEAK, DS2)).findings() == ()


def test_the_page_shows_the_table_the_findings_and_both_plots() -> None:
    page = side_by_side_page(beside(PEAK, SPARKS_OWN, cost=800.0), title="Side by side", setting="made up")
    assert "<td class='no'>6.0 %</td>" in page
    assert "Does not hold: policy &#x27;adaptive&#x27; took 80 %" in page
    assert "plot-1" in page
    assert "plot-2" in page
    assert "<script src" not in page


def test_a_page_of_runs_that_measured_nothing_can_be_made() -> None:
    nothing = Comparison(objective_s=5.0, contenders=(contender("ds2", late_pct=None, cost=0.0),))
    assert "plot-2" in side_by_side_page(nothing, title="t", setting="s")


def test_over_time_replicas_of_all_operators_and_spares_count_and_waiting_stands_in_for_results() -> None:
    def operator(name: str, replicas: int, waited_s: float | None) -> OperatorObservation:
        return OperatorObservation(
            operator=name,
            at_s=105.0,
            replicas=Replicas((replicas,)),
            arrival_rate=None,
            response_time_s=waited_s,
            utilisation=None,
        )

    seen = ApplicationObservation(
        at_s=105.0,
        response_time_s=None,
        operators=(operator("lookup", 3, 9.0), operator("score", 1, None)),
        source_rate=30.0,
    )
    (moment,) = moments_of([Interval(seen=seen, reasons=(), changed=(), spares=2)], began_s=100.0)
    assert moment == Moment(at_s=5.0, rate=30.0, response_time_s=9.0, replicas=6)


def test_a_contender_whose_course_was_thinned_out_says_so() -> None:
    moments = tuple(Moment(at_s=float(at), rate=1.0, response_time_s=1.0, replicas=1) for at in range(3))
    short, long = replace(PEAK, moments=moments), replace(PEAK, moments=moments, left_out=4_997)
    said = "over time: 3 of 5,000 intervals, all peaks among them"
    assert said in Comparison(objective_s=5.0, contenders=(long,)).remarks(long)
    assert said not in Comparison(objective_s=5.0, contenders=(short,)).remarks(short)
