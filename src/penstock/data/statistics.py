"""What characterises a trace: level, spread, memory and bursts."""

from dataclasses import dataclass

import numpy as np

from penstock.compiled import Floats
from penstock.domain.errors import InputError
from penstock.domain.trace import Trace

MOST_LEVELS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStatistics:
    """Rates in tuples/s; None where the trace is too short or too flat to say."""

    slots: int
    minimum: float
    mean: float
    deviation: float
    p5: float
    median: float
    p95: float
    p99: float
    p999: float
    maximum: float
    zeros: int
    largest_step: float
    autocorrelation_1: float | None
    autocorrelation_60: float | None
    autocorrelation_1440: float | None
    level_persistence: float | None  # probability that the next slot has the same level
    levels: int
    max_rate: float


def describe(trace: Trace, *, levels: int, max_rate: float) -> TraceStatistics:
    """The statistics of a trace, with rates discretised as the learners do."""
    if not 1 <= levels <= MOST_LEVELS:
        raise InputError(f"levels={str(levels)[:40]}; give 1 to {MOST_LEVELS:,}")
    rates = trace.rates
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # a top rate of next to nothing
        level = np.fmin(np.floor(rates / (max_rate / levels)), levels - 1)
    p5, median, p95, p99, p999 = (float(p) for p in np.percentile(rates, [5, 50, 95, 99, 99.9]))
    return TraceStatistics(
        slots=rates.size,
        minimum=float(rates.min()),
        mean=float(rates.mean()),
        deviation=float(rates.std()),
        p5=p5,
        median=median,
        p95=p95,
        p99=p99,
        p999=p999,
        maximum=float(rates.max()),
        zeros=int((rates == 0).sum()),
        largest_step=float(np.abs(np.diff(rates)).max(initial=0.0)),
        autocorrelation_1=autocorrelation(rates, 1),
        autocorrelation_60=autocorrelation(rates, 60),
        autocorrelation_1440=autocorrelation(rates, 1440),
        level_persistence=float((level[1:] == level[:-1]).mean()) if rates.size > 1 else None,
        levels=levels,
        max_rate=max_rate,
    )


def autocorrelation(rates: Floats, lag: int) -> float | None:
    """Correlation between a slot and the one `lag` slots later."""
    if rates.size <= lag + 1:
        return None
    centred = rates - rates.mean()
    variance = float(centred @ centred)
    return float(centred[:-lag] @ centred[lag:]) / variance if variance > 0 else None
