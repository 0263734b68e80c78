"""The figures of the tuned manager, from made-up runs."""

from dataclasses import replace

import pytest

from penstock.domain.objective import Weights
from penstock.papers import am_tuning
from penstock.papers.am_tuning import CELLS, OTHER_CELLS, CellResult, OtherResult, TuningCell
from penstock.papers.claims import Verdict
from penstock.policy.application.bayesian import Measured
from penstock.policy.application.tuned import Behaviour, Candidate, Configuration, Tuned


def behaviour(cost: float, late: float = 0.0) -> Behaviour:
    return Behaviour(resource_cost=cost, violations=late, reconfigurations=0.0)


def result(cell: TuningCell) -> CellResult:
    found = Measured(cost=1.0)
    return CellResult(
        cell=cell,
        naive=behaviour(9.0, late=0.04),
        bounds=behaviour(8.0),
        weights=behaviour(7.0, late=0.03),
        complete=behaviour(6.0, late=0.03),
        random=behaviour(6.5),
        unconfirmed=behaviour(6.0),
        found=found,
        found_at_random=found,
        progress=(None, 5.0, 4.0),
        progress_at_random=(None, None, 4.5),
    )


def other(cell: TuningCell) -> OtherResult:
    complete = behaviour(5.0, late=0.03) if cell.reconfigurations == 0.10 else None
    return OtherResult(cell=cell, weights=behaviour(6.0, late=0.03), complete=complete)


RESULTS, OTHERS = [result(cell) for cell in CELLS], [other(cell) for cell in OTHER_CELLS]


def test_requirements_are_counted_over_all_that_were_asked_for() -> None:
    """3 % late is too much where 1 % is allowed: a cell of weights and one of Algorithm 4 in each of six."""
    alone, naive, both, *_ = am_tuning.requirements_met(RESULTS, OTHERS)
    assert alone.measured == pytest.approx(100 * (1 - 6 / (12 + 24)))
    assert (alone.printed, alone.verdict) == ("96", Verdict.DOES_NOT)
    assert "bounds alone and Algorithm 4 are left out" in alone.note
    assert both.measured == pytest.approx(100 * (1 - 12 / (24 + 24 + 12)))
    assert (both.printed, both.met) == (None, False)
    assert "pipeline A:1 40 ms (1 % late, 10 % changed)" in both.note
    assert naive.measured == pytest.approx(100 * (1 - 6 / 36))  # 4 % late
    assert (naive.printed, naive.verdict) == ("42", Verdict.NOT_CLAIMED)


def test_bounds_alone_are_counted_with_the_other_ways_too() -> None:
    late = [replace(one, bounds=behaviour(8.0, late=0.06)) for one in RESULTS[:4]]
    whole = am_tuning.requirements_met([*late, *RESULTS[4:]], OTHERS)[4]
    assert whole.note.startswith("32 of 36 runs: bounds alone, weights alone and Algorithm 4; missed in ")
    assert whole.met is False


def test_savings_of_bounds_alone_are_claimed_of_every_setting_and_exceptions_are_named() -> None:
    all_save, more_with_one = am_tuning.bounds_alone(RESULTS)
    assert (all_save.verdict, all_save.shown) == (Verdict.HOLDS, "12 of 12")
    assert more_with_one.verdict is Verdict.DOES_NOT  # the same everywhere
    same = replace(RESULTS[2], bounds=RESULTS[2].naive)
    found = am_tuning.bounds_alone([*RESULTS[:2], same, *RESULTS[3:]])[0]
    assert (found.verdict, found.shown) == (Verdict.DOES_NOT, "11 of 12")
    assert f"not in {same.cell.name}" in found.note


def test_the_algorithm_as_printed_is_counted_by_itself_and_says_where_it_is_dearer() -> None:
    dearer = replace(RESULTS[0], unconfirmed=behaviour(9.5))
    printed, confirmed, ours = am_tuning.algorithm_4([dearer, *RESULTS[1:]])
    assert (printed.verdict, printed.shown) == (Verdict.DOES_NOT, "11 of 12")
    assert printed.note == "dearer in pipeline A:1 40 ms: 9.50 against 9.00"
    assert (confirmed.verdict, confirmed.shown) == (Verdict.HOLDS, "12 of 12")
    assert (ours.printed, ours.shown, ours.met) == (None, "0 of 36", True)


def test_runs_whose_naive_misses_the_requirements_are_left_out_by_name() -> None:
    """They cannot be dearer than a naive configuration that meets them."""
    late = replace(RESULTS[0], naive=behaviour(5.0, late=0.06))
    ours = am_tuning.algorithm_4([late, *RESULTS[1:]])[2]
    assert (ours.shown, ours.met) == ("0 of 33", True)
    assert "naive misses the requirements: pipeline A:1 40 ms" in ours.note


def test_what_more_violations_allowed_save_is_counted_step_by_step() -> None:
    """Made up: 6, but 7 at 5 %: in six settings dearer from 1 to 5 % and cheaper from 5 to 10 %."""
    factor, moves, violations = am_tuning.weights_alone(RESULTS, OTHERS)
    assert (violations.shown, violations.verdict) == ("6 of 12", Verdict.DOES_NOT)
    assert moves.measured == pytest.approx(0.0)
    assert factor.measured == pytest.approx(9 / 6)
    assert factor.verdict is Verdict.DOES_NOT


def test_every_figure_of_the_paper_has_its_chart() -> None:
    charts = {chart.title.partition(":")[0]: chart for chart in am_tuning._charts(RESULTS, OTHERS)}
    assert list(charts) == ["Figure 20", "Figure 21", "Figure 22a", "Figure 22b"]
    assert [series.name for series in charts["Figure 21"].series] == [
        "naive",
        "1 % late, 10 % changed",
        "5 % late, 5 % changed",
        "5 % late, 10 % changed",
        "5 % late, 20 % changed",
        "10 % late, 10 % changed",
    ]
    assert [series.name for series in charts["Figure 22a"].series] == [
        "naive",
        "1 % late, 10 % changed",
        "5 % late, 10 % changed",
        "10 % late, 10 % changed",
    ]
    assert [list(series.y) for series in charts["Figure 22a"].series] == [
        [9.0] * 6,
        [5.0] * 6,
        [6.0] * 6,
        [5.0] * 6,
    ]
    assert len(charts["Figure 22b"].series) == 6


def test_progress_begins_with_the_first_that_meets_the_requirements_and_never_rises() -> None:
    third = 1 / 3
    same = Configuration(
        bounds_s={}, weights=Weights(performance=third, resources=third, reconfiguration=third)
    )

    def candidate(cost: float, excess: float) -> Candidate:
        return Candidate(configuration=same, measured=Measured(cost=cost, excess=(excess,)))

    tuned = Tuned(
        start=candidate(3.0, 0.1),
        phases=[[candidate(5.0, -0.1), candidate(6.0, 0.0)], [candidate(2.0, 0.2), candidate(4.0, -1.0)]],
    )
    assert am_tuning._progress(tuned) == (None, 5.0, 5.0, 5.0, 4.0)
