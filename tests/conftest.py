"""What tests share: the real traces, where they are at hand."""

import os
from pathlib import Path

import numpy as np
import pytest

from penstock.compiled import Floats
from penstock.data.traces import read_trace

_PLACES = (os.environ.get("PENSTOCK_DATA", ""), "../shared/data")


def shared_rates() -> Path:
    """The directory of real traces; the test skips where there is none."""
    root = Path(__file__).parent.parent
    for place in _PLACES:
        if place and (found := (root / place / "rates")).is_dir():
            return found
    pytest.skip("needs the real traces: ../shared/data/rates or PENSTOCK_DATA")


@pytest.fixture(scope="session")
def rates_directory() -> Path:
    return shared_rates()


@pytest.fixture(scope="session")
def taxi(rates_directory: Path) -> Floats:
    return read_trace(rates_directory / "taxi.txt").rates


@pytest.fixture(scope="session")
def taxi_last_month(rates_directory: Path) -> Floats:
    return read_trace(rates_directory / "taxi-last-month.txt").rates


@pytest.fixture(scope="session")
def tweets(rates_directory: Path) -> Floats:
    return read_trace(rates_directory / "tweets.txt").rates


@pytest.fixture
def walk() -> Floats:
    """A short rate trace that visits every level and saturates small deployments."""
    steps = np.random.default_rng(11).normal(0, 40, 4000)
    rates: Floats = np.abs(np.cumsum(steps) % 1400 - 700)
    return np.round(rates)
