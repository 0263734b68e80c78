"""The claims about Table 1 of Cardellini 2018, from made-up runs."""

from dataclasses import replace
from math import nan

import pytest

from penstock.papers.claims import Claim, Verdict
from penstock.papers.edf_table import PAIRS, Metrics, Runs, effects, measured
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
    better = replace(PLAIN, downtime_pct=1.0, violations_pct=4.0, all_violations_pct=10.0)
    still = replace(PLAIN, downtime_pct=0.0, reconfigurations=2)
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
    claims = by_id(runs() | {"TH .3 +TB": [replace(PLAIN, downtime_pct=5.1)]})
    claim = claims["TH .3/downtime with over without bucket"]
    assert claim.printed == "3.18 / 6.12 = 0.520"
    assert (claim.verdict, claim.met) == (Verdict.HOLDS, False)
    claim = by_id(runs() | {"TH .4 +TB": [replace(PLAIN, downtime_pct=4.0)]})[
        "TH .4/downtime with over without bucket"
    ]
    assert claim.printed == "1.23 / 3.38 = 0.364"
    assert (claim.verdict, claim.met) == (Verdict.DOES_NOT, True)


def test_violations_are_judged_on_the_papers_measure_and_shown_on_ours() -> None:
    """Here the bucket raises them on the paper's measure and lowers them over all intervals."""
    claims = by_id(runs() | {"TH .3 +TB": [replace(PLAIN, violations_pct=7.0, all_violations_pct=10.0)]})
    claim = claims["TH .3/violations added by the bucket"]
    assert (claim.printed, claim.measured) == ("3.62 - 7.48 = -3.86", 2.0)
    assert claim.verdict is Verdict.DOES_NOT
    ours = claims["TH .3/violations added by the bucket, all intervals"]
    assert (ours.printed, ours.measured, ours.verdict) == (None, -10.0, Verdict.NOT_PRINTED)


@pytest.mark.parametrize("kept", [0.0, 0.6])
def test_violations_among_hardly_any_intervals_are_not_compared(kept: float) -> None:
    few = replace(PLAIN, kept_pct=kept, violations_pct=100.0 if kept else nan)
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
