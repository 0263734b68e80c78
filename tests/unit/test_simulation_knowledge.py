"""What QL+PDS+ is given, and static provisioning."""

import numpy as np
import pytest

from penstock.control.spec import Manager
from penstock.simulation.one_operator import operator_of
from penstock.simulation.play import run
from penstock.simulation.presets import PAPER, PUBLISHED, Variant, scenario
from penstock.simulation.spec import OneOperator

SEEDS = range(200)
TRUE_SERVICE_S = 1 / 180


def told(seed: int, *, as_published: bool) -> tuple[float, list[float]]:
    """Believed over true service time, and believed over true speedups of A:6."""
    spec = OneOperator(
        operator_policy=Manager("ql-pds-plus"), infrastructure="A:6", as_published=as_published
    )
    rates = np.ones(3)
    op = operator_of(spec, rates, rates, seed)
    believed = op.believed
    ratios = believed.deployments.speedup / op.deployments.speedup
    return believed.queue.service_time_s / TRUE_SERVICE_S, ratios.tolist()


def test_by_the_paper_the_service_rate_is_off_by_5_to_10_percent_either_way() -> None:
    errors = [1 / told(seed, as_published=False)[0] - 1 for seed in SEEDS]
    assert all(0.05 <= abs(error) <= 0.10 for error in errors)
    assert 0.3 < np.mean([error > 0 for error in errors]) < 0.7


def test_as_published_it_is_the_service_time_that_is_off() -> None:
    errors = [told(seed, as_published=True)[0] - 1 for seed in SEEDS]
    assert all(0.05 <= abs(error) <= 0.10 for error in errors)


def test_by_the_paper_every_speed_is_off_by_up_to_20_percent() -> None:
    ratios = np.array([told(seed, as_published=False)[1] for seed in SEEDS])
    assert ratios.min() >= 0.8
    assert ratios.max() <= 1.2
    assert (ratios.min(axis=0) < 0.82).all()
    assert (ratios.max(axis=0) > 1.18).all()


def test_as_published_no_believed_speed_passes_a_neighbours_true_one() -> None:
    speedups = np.array([1.0, 0.7, 1.3, 0.9, 1.7, 0.8])  # Russo 2023, Table 1
    order = np.argsort(speedups)
    true = speedups[order]
    for seed in SEEDS:
        believed = (np.array(told(seed, as_published=True)[1]) * speedups)[order]
        assert (believed[:-1] <= true[1:]).all()
        assert (believed[1:] >= true[:-1]).all()


@pytest.mark.parametrize(("variant", "exponent"), [(PAPER, 1.1), (PUBLISHED, 1.5)])
def test_prices_of_b2_grow_faster_than_speeds_and_as_published_faster_still(
    variant: Variant, exponent: float
) -> None:
    prices = [t.price for t in scenario("B2:3", variant).infrastructure.node_types]
    assert prices == pytest.approx([1.0, 0.05**exponent, 30.0**exponent])  # Russo 2023, Table 1


def test_static_provisioning_is_the_cheapest_that_is_in_time_at_the_peak() -> None:
    """At 300 t/s on A:3, M/G/1 with SCV .5: by brute force over identical replicas."""
    peak = 300.0

    def late(speed: float, count: int) -> bool:
        mean, each = TRUE_SERVICE_S / speed, peak / count
        busy = each * mean
        return busy >= 1 or mean + each * 1.5 * mean**2 / (2 * (1 - busy)) > 0.05

    cheapest = min(s * n for s in (1.0, 0.7, 1.3) for n in range(1, 11) if not late(s, n))
    outcome = run(OneOperator(operator_policy=Manager("fixed")), np.array([10.0, peak]))
    assert outcome.resource_cost == pytest.approx(cheapest)
    assert outcome.violations_pct <= 50  # the first slot runs one replica only


def test_where_nothing_is_in_time_static_provisioning_comes_closest() -> None:
    outcome = run(OneOperator(operator_policy=Manager("fixed"), slo_s=0.001), np.full(4, 300.0))
    assert outcome.replicas_by_type == (0.0, 0.0, 10.0)
