"""The figures of the tuned manager, from made-up runs."""

import pytest

from penstock.domain.objective import Weights
from penstock.papers import am_tuning
from penstock.papers.am_tuning import CELLS, OTHER_CELLS, CellResult, OtherResult, TuningCell
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
    tuned, naive = am_tuning._summary_of_others(RESULTS, OTHERS)
    assert tuned.measured == pytest.approx(100 * (1 - 12 / (24 + 24 + 12)))
    assert "pipeline A:1 40 ms (1 % late, 10 % changed)" in tuned.note
    assert naive.measured == pytest.approx(100 * (1 - 6 / 36))  # 4 % late


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
