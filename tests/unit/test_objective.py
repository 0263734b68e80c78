"""Objectives and weights: defaults of the paper, what is refused, limits per path."""

from math import inf, nan

import pytest

from penstock.domain.errors import InputError
from penstock.domain.objective import Objective, Weights


def test_the_default_weights_are_those_of_the_paper() -> None:
    # Russo 2023, section 6.1: w_perf = 0.6, w_res = w_rcf = 0.2
    weights = Weights()
    assert (weights.performance, weights.resources, weights.reconfiguration) == (0.6, 0.2, 0.2)


def test_equal_thirds_sum_to_one_despite_rounding() -> None:
    # Russo 2023, section 6.3: the baseline's weights
    Weights(performance=1 / 3, resources=1 / 3, reconfiguration=1 / 3)


def test_a_weight_may_be_zero() -> None:
    assert Weights(performance=1.0, resources=0.0, reconfiguration=0.0).resources == 0.0


@pytest.mark.parametrize(
    ("parts", "total"), [((0.6, 0.2, 0.1), "0.9"), ((0.6, 0.6, 0.6), "1.8"), ((0.0, 0.0, 0.0), "0")]
)
def test_weights_that_do_not_sum_to_one_are_refused_with_their_sum(
    parts: tuple[float, float, float], total: str
) -> None:
    performance, resources, reconfiguration = parts
    with pytest.raises(InputError) as caught:
        Weights(performance=performance, resources=resources, reconfiguration=reconfiguration)
    assert str(caught.value) == f"weights {parts}: they sum to {total}; they must sum to 1"


@pytest.mark.parametrize("bad", [-0.2, nan, inf])
def test_a_weight_that_is_negative_or_no_number_is_refused(bad: float) -> None:
    # -0.2 + 1.0 + 0.2 sums to 1 all the same
    with pytest.raises(InputError) as caught:
        Weights(performance=1.0, resources=bad, reconfiguration=0.2)
    assert str(caught.value).startswith(f"weights (1.0, {bad}, 0.2): each must be a number")


@pytest.mark.parametrize("limit", [0.0, -0.05, nan, inf])
def test_a_response_time_that_is_not_positive_and_finite_is_refused(limit: float) -> None:
    with pytest.raises(InputError) as caught:
        Objective(response_time_s=limit)
    assert f"response time {limit} s" in str(caught.value)


@pytest.mark.parametrize("limit", [0.0, -0.05, nan, inf])
def test_the_limit_of_a_single_path_is_checked_as_well(limit: float) -> None:
    with pytest.raises(InputError) as caught:
        Objective(response_time_s=0.05, per_path_s={("a",): limit})
    assert f"response time {limit} s" in str(caught.value)


@pytest.mark.parametrize("share", [-0.01, 1.01, nan])
def test_a_tolerance_outside_zero_to_one_is_refused_by_name(share: float) -> None:
    with pytest.raises(InputError) as violations:
        Objective(response_time_s=0.05, violations=share)
    assert str(violations.value) == f"objective: violations={share}; it must be a fraction from 0 to 1"
    with pytest.raises(InputError) as reconfigurations:
        Objective(response_time_s=0.05, reconfigurations=share)
    assert (
        str(reconfigurations.value)
        == f"objective: reconfigurations={share}; it must be a fraction from 0 to 1"
    )


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_never_and_always_are_legal_tolerances(share: float) -> None:
    objective = Objective(response_time_s=0.05, violations=share, reconfigurations=share)
    assert objective.violations == objective.reconfigurations == share


def test_a_path_without_a_limit_of_its_own_has_that_of_the_application() -> None:
    objective = Objective(response_time_s=0.05, per_path_s={("a", "b"): 0.02})
    assert objective.for_path(("a", "b")) == 0.02
    assert objective.for_path(("b", "a")) == 0.05
    assert objective.for_path(("a",)) == 0.05
