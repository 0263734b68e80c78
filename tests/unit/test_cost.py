"""The cost of an interval, Russo 2023, eq. (2), against numbers worked out by hand."""

from typing import NamedTuple

import numpy as np
import pytest

from penstock.control.spec import Manager
from penstock.domain.objective import Weights
from penstock.perf.cost import compiled_interval_cost, interval_cost
from penstock.simulation.play import run
from penstock.simulation.spec import OneOperator

WEIGHTS = Weights(
    performance=0.5, resources=0.3, reconfiguration=0.2
)  # all different: none stands for another

# violated, share of C_max, reconfigured, cost
BY_HAND = [
    (0.0, 0.0, 0.0, 0.0),
    (0.0, 0.25, 0.0, 0.075),
    (1.0, 0.25, 0.0, 0.575),
    (0.0, 0.25, 1.0, 0.275),
    (1.0, 1.0, 1.0, 1.0),
]


class Compiled(NamedTuple):
    """Weights as compiled code takes them."""

    performance: float
    resources: float
    reconfiguration: float


@pytest.mark.parametrize(("late", "share", "changed", "cost"), BY_HAND)
def test_an_interval_costs_what_equation_2_says(
    late: float, share: float, changed: float, cost: float
) -> None:
    assert interval_cost(WEIGHTS, late, share, changed) == pytest.approx(cost)
    assert compiled_interval_cost(Compiled(0.5, 0.3, 0.2), late, share, changed) == pytest.approx(cost)


def test_many_intervals_cost_what_each_of_them_does() -> None:
    late, share, changed, cost = np.array(BY_HAND).T
    assert interval_cost(WEIGHTS, late, share, changed).tolist() == pytest.approx(cost.tolist())


def test_a_simulated_slot_is_accounted_by_equation_2() -> None:
    """One replica is late at 170 of 180 tuples/s, so a second is added at once: 2 of 10 are paid for."""
    spec = OneOperator(operator_policy=Manager("threshold-0"), infrastructure="A:1", weights=WEIGHTS)
    outcome = run(spec, np.array([170.0, 170.0]), with_history=True)
    assert outcome.history is not None
    first, second = 0.5 + 0.3 * 2 / 10 + 0.2, 0.3 * 2 / 10
    assert outcome.history.cost.tolist() == pytest.approx([first, second])
    assert outcome.avg_cost == pytest.approx((first + second) / 2)
