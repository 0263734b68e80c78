"""One replica as a queue, against the textbook formulas written out here on their own.

Queueing theory works with arrival rate lam and service rate mu; our models with a mean
service time and squared coefficients of variation. Both must say the same.
"""

from math import inf, isinf, nan

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.domain.errors import InputError
from penstock.perf.queueing import (
    MeasuredCurve,
    QueueModel,
    corrected,
    g_g_1,
    interpolated,
    m_d_1,
    m_g_1,
    m_m_1,
    measured,
    replica_response_time,
    waiting_time,
)

service_rates = st.floats(0.1, 5000)  # mu, tuples/s
loads = st.floats(0.0, 0.999)  # rho
variabilities = st.floats(0.0, 10.0)
speeds = st.floats(0.05, 30.0)  # the range of infrastructures A and B, Russo 2023


def response(model: QueueModel, rate: float, speed: float = 1.0) -> float:
    return replica_response_time(model, rate, speed)


def wait(model: QueueModel, rate: float, speed: float = 1.0) -> float:
    return waiting_time(model, rate, speed)


# --- closed forms ------------------------------------------------------------------------


@settings(deadline=None)
@given(service_rates, loads)
def test_m_m_1_is_one_over_mu_minus_lambda(mu: float, rho: float) -> None:
    lam = rho * mu
    assert response(m_m_1(1 / mu), lam) == pytest.approx(1 / (mu - lam), rel=1e-9)


@settings(deadline=None)
@given(service_rates, loads)
def test_m_d_1_waits_half_as_long_as_m_m_1(mu: float, rho: float) -> None:
    lam = rho * mu
    half = (lam / (mu * (mu - lam))) / 2
    assert wait(m_d_1(1 / mu), lam) == pytest.approx(half, rel=1e-9)
    assert response(m_d_1(1 / mu), lam) == pytest.approx((2 - rho) / (2 * mu * (1 - rho)), rel=1e-9)


@settings(deadline=None)
@given(service_rates, loads, variabilities)
def test_m_g_1_is_pollaczek_khinchine(mu: float, rho: float, scv: float) -> None:
    lam, mean = rho * mu, 1 / mu
    second_moment = scv * mean**2 + mean**2  # E[S^2] = Var[S] + E[S]^2
    expected = mean + lam * second_moment / (2 * (1 - rho))
    assert response(m_g_1(mean, scv), lam) == pytest.approx(expected, rel=1e-9)


@settings(deadline=None)
@given(service_rates, loads, variabilities, variabilities)
def test_g_g_1_is_kingman(mu: float, rho: float, ca2: float, cs2: float) -> None:
    # De Matteis 2017, eq. 7
    expected = (rho / (1 - rho)) * ((ca2 + cs2) / 2) * (1 / mu)
    model = g_g_1(1 / mu, ca2, cs2)
    assert wait(model, rho * mu) == pytest.approx(expected, rel=1e-9, abs=1e-15)
    assert response(model, rho * mu) == pytest.approx(1 / mu + expected, rel=1e-9)


def test_the_published_operator_at_half_load_takes_seven_quarters_of_its_service_time() -> None:
    # published simulator, 2.2: mu = 180/s, SCV .5. By hand at lambda = 90:
    # E[S^2] = 1.5/180^2, so R = 1/180 + 90 * 1.5/180^2 / (2 * 0.5) = 1.75/180
    assert response(m_g_1(1 / 180, 0.5), 90.0) == pytest.approx(1.75 / 180, rel=1e-12)


@settings(deadline=None)
@given(service_rates, loads, variabilities, speeds)
def test_a_node_s_times_as_fast_serves_like_a_queue_of_s_times_the_service_rate(
    mu: float, rho: float, scv: float, speed: float
) -> None:
    # per replica on speedup s: mean S/s and variance V/s^2 (published simulator, 2.2)
    lam, mean, variance = rho * mu * speed, 1 / (mu * speed), scv / (mu * speed) ** 2
    expected = mean + lam * (variance + mean**2) / (2 * (1 - rho))
    assert response(m_g_1(1 / mu, scv), lam, speed) == pytest.approx(expected, rel=1e-9)


# --- the ends of the range ---------------------------------------------------------------

MODELS = {
    "m_m_1": m_m_1(1 / 128),
    "m_d_1": m_d_1(1 / 128),
    "m_g_1": m_g_1(1 / 128, 0.5),
    "g_g_1": g_g_1(1 / 128, 0.7, 0.2),
    "g_g_1 corrected": g_g_1(1 / 128, 0.7, 0.2, correction=0.1),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("rho", [1.0, 1.5, 100.0])
def test_a_saturated_replica_never_answers(model: QueueModel, speed: float, rho: float) -> None:
    rate = 128 * speed * rho  # powers of two: rho = 1 is exactly 1
    assert wait(model, rate, speed) == inf
    assert response(model, rate, speed) == inf


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
def test_a_replica_just_below_saturation_still_answers(model: QueueModel, speed: float) -> None:
    almost = 128 * speed * (1 - 1e-9)
    assert 1.0 < response(model, almost, speed) < inf  # a million service times or more


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
def test_nobody_waits_where_nobody_comes(model: QueueModel, speed: float) -> None:
    assert wait(model, 0.0, speed) == 0.0
    assert response(model, 0.0, speed) == pytest.approx(1 / 128 / speed, rel=1e-12)


@settings(deadline=None)
@given(service_rates, st.floats(0, 2), st.floats(0, 2), variabilities)
def test_more_arrivals_never_make_a_replica_faster(mu: float, a: float, b: float, scv: float) -> None:
    model = m_g_1(1 / mu, scv)
    low, high = sorted((a * mu, b * mu))
    assert response(model, low) <= response(model, high)


# --- Kingman against an exact solution ---------------------------------------------------


def exact_erlang_wait(rate: float, arrival_phases: int, service_rate: float, service_phases: int) -> float:
    """Mean wait of an E_k/E_m/1 queue from the roots of Lindley's equation (Kleinrock I, 8.2).

    The m roots s_j with negative real part of  A*(-s) B*(s) = 1  give
    W*(s) = prod_j (-s_j)(s + m mu) / ((s - s_j) m mu),  hence  E[W] = sum_j -1/s_j - 1/mu.
    """
    k, m = arrival_phases, service_phases
    a, b = k * rate, m * service_rate
    left = np.poly1d([-1.0, a]) ** k * np.poly1d([1.0, b]) ** m
    roots = (left - a**k * b**m).roots
    stable = roots[roots.real < -1e-9]
    assert len(stable) == m
    return float((-1 / stable).sum().real - 1 / service_rate)


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("phases", [1, 2, 4])
def test_pollaczek_khinchine_agrees_with_the_roots_of_lindleys_equation(rho: float, phases: int) -> None:
    # Erlang service of m phases has SCV 1/m; Poisson arrivals are one phase
    expected = exact_erlang_wait(rho, 1, 1.0, phases)
    assert wait(m_g_1(1.0, 1 / phases), rho) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("arrival_phases", "service_phases"), [(2, 2), (2, 4), (4, 2), (3, 1)])
def test_kingman_overestimates_regular_arrivals_and_is_exact_in_heavy_traffic(
    arrival_phases: int, service_phases: int
) -> None:
    # Kingman's formula is an approximation: for arrivals more regular than Poisson it lies
    # above the truth, and its relative error vanishes as rho approaches 1.
    model = g_g_1(1.0, 1 / arrival_phases, 1 / service_phases)
    error = []
    for rho in (0.5, 0.8, 0.95, 0.99):
        exact = exact_erlang_wait(rho, arrival_phases, 1.0, service_phases)
        error.append(wait(model, rho) / exact - 1)
    assert all(e > 0 for e in error)
    assert error == sorted(error, reverse=True)
    assert error[-1] < 0.01


# --- correction by measurement -----------------------------------------------------------


def kingman(rate: float, service: float, ca2: float, cs2: float) -> float:
    rho = rate * service
    return rho / (1 - rho) * (ca2 + cs2) / 2 * service


def test_the_next_prediction_is_scaled_by_measured_over_predicted() -> None:
    # De Matteis 2017, eq. 8: W(t) = W_measured(t-1) / W_K(t-1) * W_K(t)
    model = g_g_1(0.01, 0.8, 0.4)
    then, now, measured_wait = 60.0, 80.0, 0.02
    fitted = corrected(model, rate=then, measured_wait_s=measured_wait)
    expected = measured_wait / kingman(then, 0.01, 0.8, 0.4) * kingman(now, 0.01, 0.8, 0.4)
    assert wait(fitted, now) == pytest.approx(expected, rel=1e-12)


@settings(deadline=None)
@given(st.floats(0.01, 0.99), st.floats(0.01, 10), st.floats(0, 10), st.floats(0, 5))
def test_a_corrected_model_predicts_what_was_measured(
    rho: float, ca2: float, cs2: float, measured_wait: float
) -> None:
    fitted = corrected(g_g_1(0.01, ca2, cs2), rate=rho * 100, measured_wait_s=measured_wait)
    assert wait(fitted, rho * 100) == pytest.approx(measured_wait, rel=1e-9, abs=1e-12)
    assert response(fitted, rho * 100) == pytest.approx(0.01 + measured_wait, rel=1e-9)


def test_corrections_replace_one_another_and_do_not_pile_up() -> None:
    # r(t) compares with Kingman's own prediction, not with the corrected one
    once = corrected(g_g_1(0.01, 1.0, 1.0), rate=50.0, measured_wait_s=0.02)
    twice = corrected(once, rate=50.0, measured_wait_s=0.02)
    assert twice.correction == pytest.approx(once.correction) == pytest.approx(2.0)


def test_correction_scales_waiting_and_leaves_service_alone() -> None:
    fitted = corrected(m_m_1(0.01), rate=50.0, measured_wait_s=0.03)
    assert response(fitted, 0.0) == pytest.approx(0.01)
    assert response(fitted, 50.0) == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("rate", "measured_wait_s"),
    [(0.0, 0.01), (100.0, 0.01), (250.0, 0.01), (50.0, nan), (50.0, -0.01)],
    ids=["nobody came", "just saturated", "overloaded", "not measured", "impossible"],
)
def test_where_there_is_no_ratio_to_take_the_model_stays(rate: float, measured_wait_s: float) -> None:
    model = g_g_1(0.01, 1.0, 1.0, correction=1.5)
    assert corrected(model, rate=rate, measured_wait_s=measured_wait_s).correction == 1.5


def test_an_infinite_measurement_is_no_ratio_either() -> None:
    # observations are infinite when saturated; the model must still answer at rest
    fitted = corrected(m_m_1(0.01), rate=50.0, measured_wait_s=inf)
    assert response(fitted, 0.0) == pytest.approx(0.01)


# --- measured curves ---------------------------------------------------------------------

KNEE = MeasuredCurve(rates=(10.0, 50.0, 80.0, 100.0), times_s=(0.010, 0.012, 0.030, 0.200))


@st.composite
def curves(draw: st.DrawFn) -> MeasuredCurve:
    size = draw(st.integers(2, 8))
    steps = draw(st.lists(st.floats(0.01, 500), min_size=size, max_size=size))
    times = draw(st.lists(st.floats(1e-4, 10), min_size=size, max_size=size))
    return MeasuredCurve(rates=tuple(float(r) for r in np.cumsum(steps)), times_s=tuple(sorted(times)))


@settings(deadline=None)
@given(curves(), st.floats(0, 1))
def test_between_its_points_a_curve_is_what_numpy_interpolates(curve: MeasuredCurve, share: float) -> None:
    rate = share * curve.rates[-1]
    expected = np.interp(rate, curve.rates, curve.times_s)
    assert response(measured(0.001, curve), rate) == pytest.approx(expected, rel=1e-9)


@settings(deadline=None)
@given(curves(), st.floats(0, 1), speeds)
def test_a_node_s_times_as_fast_meets_s_times_the_rate_in_a_fraction_of_the_time(
    curve: MeasuredCurve, share: float, speed: float
) -> None:
    at_reference = share * 0.999 * curve.rates[-1]
    expected = np.interp(at_reference, curve.rates, curve.times_s) / speed
    assert response(measured(0.001, curve), at_reference * speed, speed) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("point", range(4))
def test_a_curve_passes_through_its_points(point: int) -> None:
    assert response(measured(0.01, KNEE), KNEE.rates[point]) == pytest.approx(KNEE.times_s[point], rel=1e-12)


def test_below_its_first_point_a_curve_is_flat() -> None:
    for rate in (0.0, 5.0, 10.0):
        assert response(measured(0.01, KNEE), rate) == 0.010


@pytest.mark.parametrize("speed", [0.5, 1.0, 4.0])
def test_beyond_its_last_point_a_curve_is_infinite(speed: float) -> None:
    model = measured(0.01, KNEE)
    assert response(model, 100.0 * speed, speed) == pytest.approx(0.200 / speed)
    assert isinf(response(model, np.nextafter(100.0, inf) * speed, speed))
    assert isinf(response(model, 1e9, speed))


def test_a_curve_replaces_the_formula() -> None:
    # at rho = 0.9 M/M/1 would say 0.1 s
    assert response(measured(0.01, KNEE), 90.0) == pytest.approx(0.115)


@given(curves(), st.data())
def test_interpolation_alone_is_numpys_inside_the_points(curve: MeasuredCurve, data: st.DataObject) -> None:
    x = data.draw(st.floats(curve.rates[0], curve.rates[-1]))
    assume(curve.rates[0] <= x <= curve.rates[-1])
    xs, ys = measured(0.001, curve).curve_rate, measured(0.001, curve).curve_time_s
    assert interpolated(x, xs, ys) == pytest.approx(np.interp(x, curve.rates, curve.times_s), rel=1e-9)


@pytest.mark.parametrize(
    ("rates", "times_s"),
    [((), ()), ((1.0,), (0.1,)), ((1.0, 2.0), (0.1,)), ((1.0, 2.0), (0.1, 0.2, 0.3))],
)
def test_a_curve_needs_two_points_and_a_time_for_each(
    rates: tuple[float, ...], times_s: tuple[float, ...]
) -> None:
    with pytest.raises(InputError, match="measured curve: give at least two rates and one time for each"):
        MeasuredCurve(rates=rates, times_s=times_s)


@pytest.mark.parametrize("rates", [(1.0, 1.0, 2.0), (1.0, 3.0, 2.0)])
def test_rates_of_a_curve_that_do_not_increase_are_refused(rates: tuple[float, ...]) -> None:
    with pytest.raises(InputError) as caught:
        MeasuredCurve(rates=rates, times_s=(0.1, 0.2, 0.3))
    assert str(caught.value) == f"measured curve: rates {rates} must increase from 0 or more"


@pytest.mark.parametrize("time_s", [0.0, -0.1, 0.09])
def test_a_time_of_a_curve_that_is_not_positive_or_falls_is_refused(time_s: float) -> None:
    with pytest.raises(InputError) as caught:
        MeasuredCurve(rates=(1.0, 2.0), times_s=(0.1, time_s))
    assert str(caught.value) == f"measured curve: times (0.1, {time_s}) must be positive and not decrease"


@pytest.mark.parametrize(("rate", "time_s"), [(nan, 0.2), (2.0, nan)])
def test_a_curve_with_a_hole_in_it_is_refused(rate: float, time_s: float) -> None:
    with pytest.raises(InputError):
        MeasuredCurve(rates=(1.0, rate, 3.0), times_s=(0.1, time_s, 0.3))


@pytest.mark.parametrize(
    ("mean", "scv"), [(-1.0, 1.0), (0.0, 1.0), (nan, 1.0), (inf, 1.0), (0.01, -3.0), (0.01, nan)]
)
def test_a_queue_that_cannot_be_is_refused(mean: float, scv: float) -> None:
    with pytest.raises(InputError, match="must be"):
        m_g_1(mean, scv)


def test_a_wait_measured_on_a_fast_node_is_compared_with_the_wait_predicted_there() -> None:
    model = g_g_1(0.01, 1.0, 1.0)
    predicted = waiting_time(model, 100.0, 2.0)
    assert predicted == pytest.approx(0.5 / 0.5 * 0.005)  # M/M/1 at 50 %, service 5 ms
    assert corrected(model, rate=100.0, measured_wait_s=3 * predicted, speed=2.0).correction == pytest.approx(
        3
    )
