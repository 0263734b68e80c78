"""Russo 2018 on a year generated from the Taxi trace, against an independent computation."""

import numpy as np
import pytest

from penstock.compiled import Floats
from penstock.data.synthetic import markov_levels
from penstock.papers.mdp_pipeline import (
    LOWER_EDGE,
    MIDPOINT,
    agent,
    centralised_learner,
    centralised_mdp,
    generated,
    run_centralised,
    run_decentralised,
)
from penstock.policy.rl.problem import levels_of


def test_the_optimum_is_that_of_an_independent_computation(taxi: Floats) -> None:
    """Average cost .1808, 4.50 % violations, 2.70 % reconfigurations, 11.40 instances."""
    year = generated(taxi, within=LOWER_EDGE)
    result = run_centralised(centralised_mdp(3, 1.65, year), year)
    assert result.avg_cost == pytest.approx(0.1808, rel=0.02)
    assert result.violations / result.slots == pytest.approx(0.0450, rel=0.02)
    assert result.reconfigurations / result.slots == pytest.approx(0.0270, rel=0.02)
    assert result.instances == pytest.approx(11.40, rel=0.02)


@pytest.mark.parametrize("within", [LOWER_EDGE, MIDPOINT])
def test_generated_rates_are_of_the_levels_they_were_generated_from(taxi: Floats, within: float) -> None:
    """A rate on the lower edge of its level must not be rounded into the one below."""
    year = generated(taxi, within=within, slots=20_000)
    assert levels_of(agent(0.7, year).problem, year.rates).tolist() == year.levels.tolist()
    assert levels_of(agent(0.7, year).problem, year.level_rates).tolist() == list(range(year.count))


def test_learning_with_the_response_time_model_costs_at_most_two_percent_more(taxi: Floats) -> None:
    year = generated(taxi, within=LOWER_EDGE)
    optimum = run_centralised(centralised_mdp(3, 1.65, year), year)
    learned = run_centralised(centralised_learner(3, 1.65, year, told=True), year)
    assert optimum.avg_cost < learned.avg_cost < 1.02 * optimum.avg_cost


def test_agents_are_best_at_seven_tenths_where_the_limit_is_650_ms_per_operator(taxi: Floats) -> None:
    """Russo 2018, Table 1: .178, .173 and .205."""
    year = generated(taxi, within=LOWER_EDGE)
    low, middle, high = (run_decentralised(3, [1.95], target, year)[1.95] for target in (0.6, 0.7, 0.8))
    assert middle.avg_cost < low.avg_cost < high.avg_cost
    assert low.violations < middle.violations < high.violations / 2


def test_a_generated_workload_moves_as_the_chain_says() -> None:
    chain = np.array([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.0, 1.0, 0.0]])
    levels = markov_levels(chain, slots=50_000, seed=3)
    moves = np.zeros((3, 3))
    np.add.at(moves, (levels[:-1], levels[1:]), 1)
    np.testing.assert_allclose(moves / moves.sum(axis=1, keepdims=True), chain, atol=0.02)
