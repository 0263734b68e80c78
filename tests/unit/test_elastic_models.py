"""Eq. 1 to 5 of De Matteis 2017, worked through by hand."""

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.errors import InputError
from penstock.perf.elastic import (
    balanced_service_s,
    computation_s,
    effective_service_s,
    ideal_service_s,
    utilisations,
)

TABLE = np.array([0, 0, 1])
SHARES = [0.5, 0.2, 0.3]
TIMES_S = [0.002, 0.001, 0.004]


def test_by_hand() -> None:
    """Replica 0: .5 x 2 + .2 x 1 = 1.2 ms of every tuple; replica 1: .3 x 4 = 1.2 ms."""
    assert computation_s([3e6], 1.5).tolist() == pytest.approx([0.002])
    assert utilisations(TABLE, SHARES, TIMES_S, 500.0, 2).tolist() == pytest.approx([0.6, 0.6])
    assert ideal_service_s(TABLE, SHARES, TIMES_S) == pytest.approx(0.0012)
    assert balanced_service_s(SHARES, TIMES_S, 2) == pytest.approx(0.0012)
    assert effective_service_s(0.0012, 500.0) == pytest.approx(0.002)
    assert effective_service_s(0.0012, 1000.0) == pytest.approx(0.0012)


def test_the_slowest_replica_decides_where_the_load_is_not_balanced() -> None:
    assert ideal_service_s(np.array([0, 1, 1]), SHARES, TIMES_S) == pytest.approx(0.0014)


@given(
    st.lists(st.tuples(st.floats(0.01, 1), st.floats(1e-5, 1e-2)), min_size=2, max_size=30), st.integers(1, 5)
)
def test_balanced_is_what_no_table_is_below(keys: list[tuple[float, float]], replicas: int) -> None:
    shares, times_s = np.array(keys).T
    table = np.arange(len(keys)) % replicas
    assert ideal_service_s(table, shares, times_s) >= balanced_service_s(shares, times_s, replicas) * (
        1 - 1e-12
    )


@pytest.mark.parametrize("rubbish", [[], [nan], [-1.0], [inf]])
def test_rubbish_is_refused(rubbish: list[float]) -> None:
    with pytest.raises(InputError):
        computation_s(rubbish, 2.0)
    with pytest.raises(InputError):
        balanced_service_s(rubbish, rubbish, 2)


@pytest.mark.parametrize("ghz", [0.0, -1.0, nan, inf])
def test_a_frequency_that_cannot_be_is_refused(ghz: float) -> None:
    with pytest.raises(InputError, match="frequency"):
        computation_s([1.0], ghz)
