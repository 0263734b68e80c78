"""The decision problem in arrays: Russo 2023, sec. 4.1 and eq. (2), (8)."""

import numpy as np
import pytest
from policy_cases import at, node_types, problem_of, seen, space_of

from penstock.domain.errors import InputError
from penstock.domain.objective import Weights
from penstock.perf.deployments import NOTHING, adding
from penstock.policy.rl.problem import (
    known_cost,
    level_of,
    level_rates,
    levels_of,
    operator_problem,
    unknown_cost,
)

SPACE = space_of(node_types((1.0, 2.0), (3.0, 1.0)), 4)


def test_whole_rates_on_a_boundary_begin_a_level() -> None:
    """Reference, pitfalls: in double arithmetic 65 // (650 / 30) is 2, but floor(65 / (650 / 30)) is 3."""
    problem = problem_of(SPACE, levels=30, max_rate=650.0)
    assert [level_of(problem, 65.0 * i) for i in range(10)] == [3 * i for i in range(10)]


def test_rates_beyond_the_top_are_on_the_top_level() -> None:
    problem = problem_of(SPACE, levels=30, max_rate=650.0)
    assert levels_of(problem, np.array([0.0, 649.9, 650.0, 1029.0])).tolist() == [0, 29, 29, 29]


def test_a_level_stands_for_its_midpoint() -> None:
    assert level_rates(problem_of(SPACE)).tolist() == [50.0, 150.0, 250.0]


def test_costs_are_those_of_equation_2_split_into_known_and_unknown() -> None:
    problem = problem_of(SPACE, weights=Weights(performance=0.5, resources=0.3, reconfiguration=0.2))
    target = at(SPACE, 1, 2)
    most = 4 * 3.0  # C_max: all replicas there may be, on the dearest type
    assert known_cost(problem, NOTHING, target) == pytest.approx(0.3 * 5.0 / most)
    assert known_cost(problem, adding(SPACE, 0), target) == pytest.approx(0.3 * 5.0 / most + 0.2)
    assert unknown_cost(problem, seen(target, response_time_s=0.05)) == 0.0  # at the limit, not over it
    assert unknown_cost(problem, seen(target, response_time_s=0.0501)) == 0.5


@pytest.mark.parametrize(("levels", "max_rate"), [(0, 100.0), (3, 0.0), (3, -1.0)])
def test_a_problem_without_levels_or_rates_is_refused(levels: int, max_rate: float) -> None:
    with pytest.raises(InputError, match=r"levels=0|max_rate="):
        operator_problem(SPACE, levels=levels, max_rate=max_rate, max_response_time_s=0.05, weights=Weights())
