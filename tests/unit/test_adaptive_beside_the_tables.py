"""What `adaptive` is compared with: the cells of the tables, the bound in hindsight, the time to settle."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from penstock.control.spec import Manager
from penstock.papers.adaptive import CHANGES, Cell, can_be_planned, cells, interval, slots_until_close
from penstock.papers.hindsight import least_costs
from penstock.perf.deployments import cost_of
from penstock.perf.operator import response_time
from penstock.simulation.one_operator import operator_of, run_operator
from penstock.simulation.spec import OneOperator

BASE = OneOperator(operator_policy=Manager("adaptive"), infrastructure="A:2", max_replicas=2)


def test_of_every_cell_the_cheapest_printed_row_is_taken() -> None:
    listed = cells()
    assert len(listed) == 24
    assert Cell("2", "taxi", 10, "A:3", 0.0366, "TB-C") in listed
    assert Cell("5", "tweets", 20, "B:6", 0.0018, "DQL+PDS+") in listed
    assert sum(not can_be_planned(cell) for cell in listed) == 4  # ten types and twenty replicas


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_the_cheapest_of_all_sequences(seed: int) -> None:
    """Mixed deployments included: five deployments over five slots, every sequence of them."""
    rates = np.random.default_rng(seed).uniform(50, 700, 5)
    known = operator_of(BASE, rates, rates, 1)
    space, weights = known.deployments, known.weights
    deployments = range(space.replicas.size)

    def cost(sequence: tuple[int, ...]) -> float:
        total = 0.0
        for slot, one in enumerate(sequence):
            late = response_time(known.queue, space, one, float(rates[slot])) > known.max_response_time_s
            total += weights.performance * late + weights.resources * cost_of(space, one) / known.cost_scale
            total += weights.reconfiguration * (slot > 0 and one != sequence[slot - 1])
        return total

    least = min(cost(sequence) for sequence in product(deployments, repeat=rates.size))
    assert least_costs(known, rates).sum() == pytest.approx(least)


@pytest.mark.parametrize("policy", ["adaptive", "threshold-c", "vi"])
def test_no_policy_costs_less_than_the_bound(policy: str) -> None:
    rates = 300 + 200 * np.sin(np.arange(3000) / 100) + np.random.default_rng(2).normal(0, 20, 3000)
    spec = replace(BASE, operator_policy=Manager(policy), infrastructure="A:3", max_replicas=6)
    made = run_operator(spec, rates, rates, with_history=True)
    known = operator_of(spec, rates, rates, 1)
    assert made.avg_cost >= least_costs(known, rates).mean()


def test_it_has_settled_once_the_mean_since_the_change_stays_near_the_optimum() -> None:
    optimum = np.full(100, 1.0)
    late = optimum.copy()
    late[:5] = 2.0  # five too many: within 10 % of the sum from slot 50 on
    assert slots_until_close(late, optimum) == pytest.approx(50, abs=1)
    assert slots_until_close(optimum, optimum) == 0
    assert slots_until_close(2 * optimum, optimum) == 100


def test_the_load_doubles_as_in_the_published_experiment() -> None:
    taxi = np.arange(525_533, dtype=float)
    rates = CHANGES[0].rates(taxi)
    assert rates.size == 463_033
    assert (rates[199_999], rates[200_000]) == (199_999.0, 2 * 262_500.0)


def test_an_interval_is_students() -> None:
    mean, half = interval([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert half == pytest.approx(4.303 * 1 / 3**0.5, rel=1e-3)
