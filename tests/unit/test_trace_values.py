"""Traces: which rates are legal, and cutting and scaling them."""

from math import inf, nan

import numpy as np
import pytest

from penstock.domain.errors import InputError
from penstock.domain.trace import Trace


def trace(*rates: float) -> Trace:
    return Trace("taxi", np.array(rates, dtype=np.float64))


def test_an_empty_trace_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="trace 'taxi': no rates in it"):
        trace()


@pytest.mark.parametrize("bad", [-1.0, nan, inf, -inf])
def test_the_first_slot_that_is_no_rate_is_named_with_its_value(bad: float) -> None:
    with pytest.raises(InputError) as caught:
        trace(5.0, 0.0, bad, 3.0, -7.0)
    assert str(caught.value) == f"trace 'taxi': slot 2: {bad} is not a rate"


def test_silence_is_a_legal_rate() -> None:
    assert trace(0.0, 0.0).rates.tolist() == [0.0, 0.0]


def test_the_first_and_last_slots_are_cut_off_the_ends() -> None:
    whole = trace(1.0, 2.0, 3.0, 4.0)
    assert whole.first(3).rates.tolist() == [1.0, 2.0, 3.0]
    assert whole.last(3).rates.tolist() == [2.0, 3.0, 4.0]
    assert whole.first(1).name == whole.last(1).name == "taxi"


def test_the_first_no_slots_are_no_trace() -> None:
    with pytest.raises(InputError, match="trace 'taxi': no rates in it"):
        trace(1.0, 2.0).first(0)


def test_the_last_no_slots_are_no_trace() -> None:
    with pytest.raises(InputError, match="trace 'taxi': no rates in it"):
        trace(1.0, 2.0).last(0)


def test_a_change_at_run_time_scales_from_its_slot_on_and_leaves_the_original() -> None:
    before = trace(1.0, 2.0, 3.0, 4.0)
    assert before.scaled_from(2, 2.0).rates.tolist() == [1.0, 2.0, 6.0, 8.0]
    assert before.rates.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_factor_that_makes_rates_negative_is_refused() -> None:
    with pytest.raises(InputError, match=r"trace 'taxi': slot 1: -4.0 is not a rate"):
        trace(1.0, 2.0).scaled_from(1, -2.0)
