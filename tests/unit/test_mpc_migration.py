"""Figure 10 of De Matteis 2017: what must hold whatever is assumed, and what is claimed of it."""

import numpy as np
import pytest

from penstock.papers.mpc_migration import (
    AFTER,
    INTERVAL_S,
    KEYS,
    SLIDE,
    SLOW,
    Assumed,
    cell,
    courses,
    ranges,
)
from penstock.runtimes.sim.elastic.protocol import Protocol


@pytest.mark.parametrize("assumed", [Assumed(), SLOW], ids=["as assumed", "slow states"])
def test_a_migration_costs_latency_and_results_only_for_a_while(assumed: Assumed) -> None:
    for protocol, course in courses(1, assumed).items():
        before, last = course.ends_s < 30, course.ends_s > 33.5
        calm_s = course.mean_latency_s[before][-3:].mean()
        assert course.peak_s > 10 * calm_s, protocol
        assert course.results[last].mean() == pytest.approx(AFTER / SLIDE * INTERVAL_S, rel=0.15)
        assert course.results.sum() * SLIDE == pytest.approx(3e5 + 4 * AFTER, rel=0.02)


def test_slow_states_cost_least_by_mp_and_most_by_r_blk() -> None:
    found = cell(SLOW, seeds=3)
    assert found.as_printed
    assert found.mp_lowest
    assert found.over(Protocol.MP, Protocol.R_BLK) < 0.9


def test_ranges_are_every_combination_once() -> None:
    assert len(set(ranges())) == len(ranges()) == 3 * 3 * 2 * 4
    assert KEYS == 2836
    assert all(np.isclose(one.costs.acquire_s, 5 * one.costs.save_s) for one in ranges())
