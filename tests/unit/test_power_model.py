"""The power model of De Matteis 2017 (eq. 9), against values worked out by hand."""

from math import inf, nan

import numpy as np
import pytest

from penstock.domain.errors import InputError
from penstock.perf.power import PowerTable, calibrated, sandy_bridge

TWO = PowerTable(ghz=(1.0, 2.0), volts=(0.5, 1.0), capacitance_nf=3.0)


def test_power_is_capacitance_times_cores_times_frequency_times_voltage_squared() -> None:
    assert TWO.watts(4, 2.0) == 3 * 4 * 2 * 1  # 24 W
    assert TWO.watts(4, 1.0) == 3 * 4 * 1 * 0.25  # half the frequency, an eighth of the power
    assert TWO.watts(0, 2.0) == 0


def test_twelve_replicas_at_2_ghz_use_what_the_paper_measured() -> None:
    table = sandy_bridge()
    assert table.ghz == (1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0)
    assert float(table.watts(12, 2.0)) == pytest.approx(68.25)
    assert table.capacitance_nf == pytest.approx(68.25 / 24)  # 12 cores x 2 GHz x (1 V)^2
    assert float(table.watts(12, 1.2)) == pytest.approx(26.208)  # 2.84375 x 12 x 1.2 x .64
    assert float(table.watts(6, 1.6)) == pytest.approx(22.113)  # 2.84375 x 6 x 1.6 x .81


def test_with_three_cores_more_than_replicas_the_peak_is_the_same_and_an_idle_operator_is_not_free() -> None:
    table = sandy_bridge(extra_cores=3)
    assert float(table.watts(12, 2.0)) == pytest.approx(68.25)
    assert float(table.watts(6, 1.6)) == pytest.approx(26.5356)  # 2.275 x 9 x 1.6 x .81
    assert float(table.watts(0, 2.0)) == pytest.approx(13.65)  # 2.275 x 3 x 2


def test_only_the_ratio_of_the_assumed_voltages_matters() -> None:
    one, other = sandy_bridge(), sandy_bridge(volts_at_lowest=0.88, volts_at_highest=1.1)
    assert one.watts(7, np.array(one.ghz)) == pytest.approx(other.watts(7, np.array(one.ghz)))


def test_replicas_and_frequencies_are_broadcast() -> None:
    watts = TWO.watts(np.array([[1], [2], [4]]), np.array([1.0, 2.0]))
    assert watts.tolist() == [[0.75, 6.0], [1.5, 12.0], [3.0, 24.0]]


def test_a_frequency_is_found_to_the_khz() -> None:
    assert sandy_bridge().rows(1.2 + 0.1 + 0.1 + 0.1) == 3


@pytest.mark.parametrize("ghz", [1.25, 0.0, -1.2, 2.1, 1.0, nan, inf, -inf])
def test_a_frequency_outside_the_table_is_refused_and_the_allowed_ones_are_named(ghz: float) -> None:
    with pytest.raises(InputError, match=r"not in the table: 1\.2, 1\.3, .*, 1\.9, 2"):
        sandy_bridge().watts([1, 2], [1.5, ghz])


@pytest.mark.parametrize("replicas", [-1, nan, inf])
def test_replicas_that_cannot_be_are_refused(replicas: float) -> None:
    with pytest.raises(InputError, match="replicas"):
        TWO.watts(replicas, 1.0)


@pytest.mark.parametrize(
    ("ghz", "volts", "capacitance", "said"),
    [
        ((), (), 1.0, "at least one"),
        ((1.0, 2.0), (1.0,), 1.0, "one voltage for each"),
        ((2.0, 1.0), (1.0, 1.0), 1.0, "frequencies .* must increase"),
        ((1.0, 1.0), (1.0, 1.0), 1.0, "frequencies .* must increase"),
        ((1.0, 2.0), (1.0, 0.9), 1.0, "voltages .* must not decrease"),
        ((0.0, 2.0), (1.0, 1.0), 1.0, "frequencies .* positive and finite"),
        ((1.0, inf), (1.0, 1.0), 1.0, "frequencies .* positive and finite"),
        ((1.0, 2.0), (nan, 1.0), 1.0, "voltages .* positive and finite"),
        ((1.0, 2.0), (-1.0, 1.0), 1.0, "voltages .* positive and finite"),
        ((1.0, 2.0), (1.0, 1.0), 0.0, "capacitance"),
        ((1.0, 2.0), (1.0, 1.0), inf, "capacitance"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused(
    ghz: tuple[float, ...], volts: tuple[float, ...], capacitance: float, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        PowerTable(ghz=ghz, volts=volts, capacitance_nf=capacitance)


def test_extra_cores_and_calibration_are_checked() -> None:
    with pytest.raises(InputError, match="extra_cores=-1"):
        sandy_bridge(extra_cores=-1)
    with pytest.raises(InputError, match="cannot be calibrated"):
        calibrated((1.0,), (1.0,), replicas=0, at_ghz=1.0, watts=10.0)
    with pytest.raises(InputError, match="cannot be calibrated"):
        calibrated((1.0,), (1.0,), replicas=1, at_ghz=1.0, watts=nan)
