"""Response time of one replica: as a single-server queue, or of micro-batches.

M/M/1, M/D/1, M/G/1 and G/G/1 are one formula with other variabilities. Kingman's waiting
time (De Matteis 2017, eq. 7) is  W = rho/(1-rho) * (ca2+cs2)/2 * S.  With Poisson arrivals
(ca2 = 1) it equals Pollaczek-Khinchine exactly; cs2 = 1 gives M/M/1, cs2 = 0 M/D/1.
Micro-batches are no such queue: `perf/micro_batch.py` has their formula.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, compiled, frozen_floats
from penstock.domain.application import Batching
from penstock.domain.errors import InputError
from penstock.perf.micro_batch import settled_response_s


class Split(Enum):
    """How arrivals are divided over replicas."""

    EVENLY = "evenly"
    BY_SPEED = "by-speed"


class Judged(Enum):
    """Which replica an operator is judged by."""

    WORST = "worst"
    MEAN = "mean"


class QueueModel(NamedTuple):
    """What a kernel needs to know about an operator's replicas."""

    service_time_s: float  # mean on speedup 1
    arrival_scv: float
    service_scv: float
    correction: float  # measured over predicted waiting time, De Matteis 2017 eq. 8
    by_speed: bool
    by_mean: bool
    curve_rate: Floats  # measured curve at speedup 1; empty: use the formula
    curve_time_s: Floats
    in_batches: bool = False  # micro-batches: variabilities and curve are not used
    batch_fixed_s: float = 0.0
    trigger_s: float = 0.0
    pooled: bool = False  # all replicas are one server, as fast as they are together


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCurve:
    """Response times measured at some arrival rates on a node of speedup 1."""

    rates: tuple[float, ...]
    times_s: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.rates) != len(self.times_s) or len(self.rates) < 2:
            raise InputError("measured curve: give at least two rates and one time for each")
        if not all(a < b < np.inf for a, b in pairwise(self.rates)) or not self.rates[0] >= 0:
            raise InputError(f"measured curve: rates {self.rates} must increase from 0 or more")
        if not self.times_s[0] > 0 or not all(a <= b < np.inf for a, b in pairwise(self.times_s)):
            # The slowest replica is taken to be the worst one, so more load must not be faster.
            raise InputError(f"measured curve: times {self.times_s} must be positive and not decrease")


def _model(
    service_time_s: float,
    *,
    arrival_scv: float,
    service_scv: float,
    split: Split,
    judged: Judged,
    correction: float = 1.0,
    curve_rate: Sequence[float] = (),
    curve_time_s: Sequence[float] = (),
) -> QueueModel:
    if not 0 < service_time_s < np.inf:
        raise InputError(f"service time {service_time_s} s; it must be positive and finite")
    for what, value in (
        ("SCV of arrivals", arrival_scv),
        ("SCV of service times", service_scv),
        ("correction", correction),
    ):
        if not 0 <= value < np.inf:
            raise InputError(f"{what} {value}; it must be finite and not negative")
    return QueueModel(
        service_time_s=float(service_time_s),
        arrival_scv=float(arrival_scv),
        service_scv=float(service_scv),
        correction=float(correction),
        by_speed=split is Split.BY_SPEED,
        by_mean=judged is Judged.MEAN,
        curve_rate=frozen_floats(curve_rate),
        curve_time_s=frozen_floats(curve_time_s),
    )


def m_m_1(service_time_s: float, *, split: Split = Split.EVENLY, judged: Judged = Judged.WORST) -> QueueModel:
    """Poisson arrivals, exponential service."""
    return _model(service_time_s, arrival_scv=1, service_scv=1, split=split, judged=judged)


def m_d_1(service_time_s: float, *, split: Split = Split.EVENLY, judged: Judged = Judged.WORST) -> QueueModel:
    """Poisson arrivals, constant service."""
    return _model(service_time_s, arrival_scv=1, service_scv=0, split=split, judged=judged)


def m_g_1(
    service_time_s: float, service_scv: float, *, split: Split = Split.EVENLY, judged: Judged = Judged.WORST
) -> QueueModel:
    """Poisson arrivals, any service: Pollaczek-Khinchine, exact."""
    return _model(service_time_s, arrival_scv=1, service_scv=service_scv, split=split, judged=judged)


def g_g_1(
    service_time_s: float,
    arrival_scv: float,
    service_scv: float,
    *,
    correction: float = 1.0,
) -> QueueModel:
    """Any arrivals, any service: Kingman's approximation, of one server with the speed of all replicas.

    As De Matteis 2017 has it (sec. 3.2): a tuple waits for a server of service time T/n, and is worked on
    for T.
    """
    one_by_one = _model(
        service_time_s,
        arrival_scv=arrival_scv,
        service_scv=service_scv,
        correction=correction,
        split=Split.BY_SPEED,
        judged=Judged.MEAN,
    )
    return one_by_one._replace(pooled=True)


def measured(
    service_time_s: float, curve: MeasuredCurve, *, split: Split = Split.EVENLY, judged: Judged = Judged.WORST
) -> QueueModel:
    """Response times read off a measured curve; beyond its last rate the replica counts as saturated."""
    return _model(
        service_time_s,
        arrival_scv=1,
        service_scv=1,
        split=split,
        judged=judged,
        curve_rate=curve.rates,
        curve_time_s=curve.times_s,
    )


def micro_batches(service_time_s: float, batching: Batching) -> QueueModel:
    """Micro-batches that end when the slowest replica does, all having the same number of tuples."""
    one_by_one = _model(service_time_s, arrival_scv=1, service_scv=0, split=Split.EVENLY, judged=Judged.WORST)
    return one_by_one._replace(
        in_batches=True, batch_fixed_s=float(batching.fixed_s), trigger_s=float(batching.trigger_s)
    )


def queue_as_known(service_time_s: float, service_scv: float, batching: Batching | None) -> QueueModel:
    """An operator by what was measured of it: of micro-batches where it has any, else M/G/1."""
    if batching is None:
        return m_g_1(service_time_s, service_scv)
    return micro_batches(service_time_s, batching)


def corrected(model: QueueModel, *, rate: float, measured_wait_s: float, speed: float = 1.0) -> QueueModel:
    """Fit the model to the last measurement (De Matteis 2017, eq. 8): scale waiting by measured/predicted.

    `rate` and the measured wait are those of one server, on a node of this speed. A measured
    curve is a measurement already and stays as it is; micro-batches are calibrated by their own.
    """
    if model.in_batches:
        return model
    plain = model._replace(correction=1.0)
    predicted = waiting_time(plain, rate, speed)
    if model.curve_rate.size > 0 or not (0 < predicted < np.inf and 0 <= measured_wait_s < np.inf):
        return model  # nothing was queueing, or the queue was saturated: no ratio to take
    ratio = float(measured_wait_s / predicted)
    return plain._replace(correction=ratio) if ratio < np.inf else model


@compiled
def waiting_time(model: QueueModel, rate: float, speed: float) -> float:
    """Mean time in queue of a replica that gets `rate` tuples/s; infinite when it cannot keep up.

    In a micro-batch, all the time in which a tuple is not itself worked on.
    """
    service = model.service_time_s / speed
    if model.in_batches:
        return max(_response_in_batches(model, rate, speed) - service, 0.0)
    utilisation = rate * service
    if utilisation >= 1.0:
        return np.inf
    variability = (model.arrival_scv + model.service_scv) / 2.0
    return model.correction * variability * utilisation * service / (1.0 - utilisation)


@compiled
def _response_in_batches(model: QueueModel, rate: float, speed: float) -> float:
    return settled_response_s(model.batch_fixed_s, model.service_time_s, model.trigger_s, rate, speed)


@compiled
def capacity(model: QueueModel, speed: float) -> float:
    """Tuples/s at which a replica saturates."""
    if model.curve_rate.size > 0:
        return float(model.curve_rate[-1]) * speed
    return speed / model.service_time_s


@compiled
def load(model: QueueModel, rate: float, speed: float) -> float:
    """Share of time a replica that gets `rate` tuples/s is busy; above 1 in overload."""
    if model.curve_rate.size > 0:
        return rate / capacity(model, speed)
    return rate * (model.service_time_s / speed)


@compiled
def interpolated(x: float, xs: Floats, ys: Floats) -> float:
    """Linear between the points, flat before the first, infinite after the last."""
    if x <= xs[0]:
        return float(ys[0])
    for right in range(1, xs.size):
        if x <= xs[right]:
            share = (x - xs[right - 1]) / (xs[right] - xs[right - 1])
            return float(ys[right - 1] + share * (ys[right] - ys[right - 1]))
    return np.inf


@compiled
def replica_response_time(model: QueueModel, rate: float, speed: float) -> float:
    """Mean time from arrival to completion at one replica."""
    if model.in_batches:
        return _response_in_batches(model, rate, speed)
    if model.curve_rate.size > 0:
        # A node twice as fast meets twice the rate in half the time.
        equivalent = rate / speed
        return interpolated(equivalent, model.curve_rate, model.curve_time_s) / speed
    return model.service_time_s / speed + waiting_time(model, rate, speed)
