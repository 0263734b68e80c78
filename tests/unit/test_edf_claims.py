"""The claims about Table 1 of Cardellini 2018, from made-up runs."""

from math import nan
from pathlib import Path

import numpy as np
import pytest

from penstock.papers import edf_table
from penstock.papers.claims import Claim, Progress, Verdict
from penstock.papers.edf_run import STATED, Metrics, measured
from penstock.papers.edf_settings import SETTINGS_TRIED
from penstock.papers.edf_table import (
    PAIRS,
    ROWS,
    SETTINGS,
    Job,
    Runs,
    charts_of_settings,
    effects,
    played,
    with_settings,
)
from penstock.papers.kept_runs import KeptRuns
from penstock.runtimes.sim.application import PlayedSlot

PLAIN = Metrics(
    mean_ms=100.0,
    median_ms=100.0,
    p95_ms=100.0,
    replicas=8.0,
    downtime_pct=10.0,
    violations_pct=5.0,
    all_violations_pct=20.0,
    kept_pct=50.0,
    reconfigurations=10,
    last_change_s=600.0,
)


def runs(**changed: Metrics) -> dict[str, list[Metrics]]:
    """With the bucket a tenth of the downtime, and fewer violations."""
    better = PLAIN._replace(downtime_pct=1.0, violations_pct=4.0, all_violations_pct=10.0)
    still = PLAIN._replace(downtime_pct=0.0, reconfigurations=2)
    made = {row: [PLAIN] for row in PAIRS} | {f"{row} +TB": [better] for row in PAIRS}
    made |= {"MB steady": [still], "MB steady +TB": [still], "MB steady, warm": [PLAIN]}
    return made | {row.replace("_", " "): [metrics] for row, metrics in changed.items()}


def by_id(found: Runs) -> dict[str, Claim]:
    return {claim.id.removeprefix("edf/"): claim for claim in effects(found)}


def test_every_pair_of_the_table_is_claimed() -> None:
    claims = by_id(runs())
    for row in PAIRS:
        assert f"{row}/violations added by the bucket" in claims
        assert row == "MB steady" or f"{row}/downtime with over without bucket" in claims
    assert claims["MB steady/downtime (%)"].printed == claims["MB steady +TB/downtime (%)"].printed == "0.00"


def test_downtime_is_judged_by_the_printed_ratio_and_half_is_what_we_ask() -> None:
    claims = by_id(runs() | {"TH .3 +TB": [PLAIN._replace(downtime_pct=5.1)]})
    claim = claims["TH .3/downtime with over without bucket"]
    assert claim.printed == "3.18 / 6.12 = 0.520"
    assert (claim.verdict, claim.met) == (Verdict.HOLDS, False)
    claim = by_id(runs() | {"TH .4 +TB": [PLAIN._replace(downtime_pct=4.0)]})[
        "TH .4/downtime with over without bucket"
    ]
    assert claim.printed == "1.23 / 3.38 = 0.364"
    assert (claim.verdict, claim.met) == (Verdict.DOES_NOT, True)


def test_violations_are_judged_on_the_papers_measure_and_shown_on_ours() -> None:
    """Here the bucket raises them on the paper's measure and lowers them over all intervals."""
    claims = by_id(runs() | {"TH .3 +TB": [PLAIN._replace(violations_pct=7.0, all_violations_pct=10.0)]})
    claim = claims["TH .3/violations added by the bucket"]
    assert (claim.printed, claim.measured) == ("3.62 - 7.48 = -3.86", 2.0)
    assert claim.verdict is Verdict.DOES_NOT
    ours = claims["TH .3/violations added by the bucket, all intervals"]
    assert (ours.printed, ours.measured, ours.verdict) == (None, -10.0, Verdict.NOT_PRINTED)


@pytest.mark.parametrize("kept", [0.0, 0.6])
def test_violations_among_hardly_any_intervals_are_not_compared(kept: float) -> None:
    few = PLAIN._replace(kept_pct=kept, violations_pct=100.0 if kept else nan)
    claim = by_id(runs() | {"QL sparing": [few]})["QL sparing/violations added by the bucket"]
    assert (claim.shown, claim.verdict) == ("-", Verdict.DOES_NOT)
    assert "below 5 % they are not compared" in claim.note


def slot(at_s: float, *, violated: bool = False, reconfigured: bool = False) -> PlayedSlot:
    return PlayedSlot(
        at_s=at_s,
        rate=1.0,
        response_time_s=0.1,
        violated=violated,
        replicas=7,
        by_type=(7,),
        resources=7.0,
        downtime_s=3.0 if violated else 0.0,
        reconfigured=reconfigured,
        migrations=0,
        waiting=0.0,
    )


def test_two_minutes_after_each_change_are_left_out_of_the_papers_measure_only() -> None:
    """Ten slots after the start; the four after the change, all late, do not count."""
    played = [slot(1800.0, violated=True)]
    played += [slot(1800 + 30 * nth, violated=4 <= nth < 8, reconfigured=nth == 3) for nth in range(1, 11)]
    found = measured(played)
    assert found.violations_pct == 0.0
    assert found.kept_pct == 60.0
    assert found.all_violations_pct == 40.0
    assert found.downtime_pct == pytest.approx(100 * 4 * 3 / (10 * 30))


def test_where_no_interval_is_left_nothing_is_measured_in_its_place() -> None:
    """Before, all intervals counted then: Q-learning without the bucket was judged by its pauses."""
    found = measured([slot(1800 + 30 * nth, violated=True, reconfigured=True) for nth in range(11)])
    assert found.kept_pct == 0.0
    assert str(found.violations_pct) == str(found.mean_ms) == str(found.replicas) == "nan"
    assert found.all_violations_pct == 100.0


def downtime_at(stated: float, **others: float) -> Claim:
    """Threshold .3's claim where the bucket's downtime is this, and at other fluctuations that."""
    fluctuation = SETTINGS_TRIED[0]
    swept = {
        fluctuation: {
            value: runs() | {"TH .3 +TB": [PLAIN._replace(downtime_pct=others.get(f"at_{nth}", stated))]}
            for nth, value in enumerate(fluctuation.others)
        }
    }
    claims = with_settings(effects(runs() | {"TH .3 +TB": [PLAIN._replace(downtime_pct=stated)]}), swept)
    return next(one for one in claims if one.id == "edf/TH .3/downtime with over without bucket")


def test_a_claim_that_fails_under_another_setting_holds_within_a_range() -> None:
    """Fluctuations tried: 0, .05, .1, .15, .2 as stated, .25, .3."""
    assert downtime_at(4.7).verdict is Verdict.HOLDS
    corner = downtime_at(4.7, at_0=11.1, at_1=9.2, at_2=5.5, at_5=5.8)
    assert corner.verdict is Verdict.HOLDS_WITHIN
    assert corner.within == "fluctuation of rates 0.15 to 0.25 (tried: 0 to 0.3)"
    assert downtime_at(5.5, at_0=4.0).verdict is Verdict.DOES_NOT


def test_every_setting_is_on_the_page_with_its_reason_its_values_and_a_plot() -> None:
    page = "\n".join(SETTINGS)
    fluctuation = SETTINGS_TRIED[0]
    swept = {one: {value: runs() for value in one.others} for one in SETTINGS_TRIED}
    titles = [chart.title for chart in charts_of_settings(with_settings(effects(runs()), swept))]
    for one in SETTINGS_TRIED:
        assert one.why in page
        assert f"{one.stated:g}; tried {one.listed}" in page
        assert f"Downtime with the bucket over that without, by {one.name}" in titles
    (chart, *_) = charts_of_settings(with_settings(effects(runs()), swept))
    assert list(chart.series[0].x) == sorted([fluctuation.stated, *fluctuation.others])


def test_the_values_tried_reach_the_setting_they_are_named_after() -> None:
    """Each changes one part of what is assumed; the stated value changes nothing."""
    for one in SETTINGS_TRIED:
        assert one.of(STATED, one.stated) == STATED, one.name
        changed = {repr(one.of(STATED, value)) for value in one.others}
        assert len(changed) == len(one.others)
        assert repr(STATED) not in changed


def test_finished_rows_are_kept_and_other_settings_are_other_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[object] = []

    def pretended(kind: str, **asked: object) -> Metrics:
        made.append(asked["assumed"])
        return PLAIN._replace(violations_pct=nan)

    monkeypatch.setattr(edf_table, "run_row", pretended)
    fluctuation = SETTINGS_TRIED[0]
    jobs = [Job(ROWS[0], STATED, 0), Job(ROWS[0], fluctuation.of(STATED, 0.1), 0), Job(ROWS[0], STATED, 1)]
    for expected in (3, 0):
        made.clear()
        steps: list[int] = []
        progress = Progress(of=steps.append, advance=lambda: None, kept=KeptRuns(tmp_path / "edf.runs.jsonl"))
        found = played(jobs, np.ones(10), 1, progress)
        assert len(made) == expected
        assert steps == [3]
        assert [str(one.violations_pct) for one in found] == ["nan"] * 3
        assert [one.downtime_pct for one in found] == [PLAIN.downtime_pct] * 3
    made.clear()
    progress = Progress(of=steps.append, advance=lambda: None, kept=KeptRuns(tmp_path / "edf.runs.jsonl"))
    played(jobs[:1], np.full(10, 2.0), 1, progress)
    assert len(made) == 1, "another load is another run"
