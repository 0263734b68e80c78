"""Cardellini 2018, Table 1 on the Taxi trace: what the local managers and the token bucket do."""

import pytest

from penstock.compiled import Floats
from penstock.domain.objective import Weights
from penstock.papers.edf_run import STATED, WARM, Assumed, Metrics, run_row

SPARING = Weights(performance=0.4, resources=0.4, reconfiguration=0.2)
STEADY = Weights(performance=0.4, resources=0.2, reconfiguration=0.4)


def row(
    taxi: Floats, kind: str, weights: Weights, *, bucket: bool = False, assumed: Assumed = STATED
) -> Metrics:
    return run_row(
        kind,
        threshold=0.3,
        weights=weights,
        token_bucket=bucket,
        taxi=taxi,
        seed=7,
        assumed=assumed,
    )


@pytest.mark.parametrize("kind", ["TH", "QL"])
def test_the_bucket_halves_downtime_and_does_not_raise_violations(taxi: Floats, kind: str) -> None:
    without, with_bucket = (row(taxi, kind, SPARING, bucket=bucket) for bucket in (False, True))
    assert with_bucket.downtime_pct < without.downtime_pct / 2
    assert with_bucket.all_violations_pct <= without.all_violations_pct


def test_a_model_based_manager_to_whom_changes_are_dear_stands_still_after_a_cold_start(taxi: Floats) -> None:
    """Printed: no downtime after the first half hour. Started warm it follows the first days."""
    steady = row(taxi, "MB", STEADY)
    assert steady.last_change_s < 30 * 60
    assert steady.downtime_pct == 0.0
    assert row(taxi, "MB", STEADY, assumed=WARM).last_change_s > 60 * 60
    assert steady.reconfigurations < row(taxi, "MB", SPARING).reconfigurations / 2
