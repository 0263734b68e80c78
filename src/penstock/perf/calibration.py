"""The QoS analyser: a model to simulate, from what was monitored (Russo 2023, sec. 5.2.2).

Mean and variance of each operator's service time make it an M/G/1 queue per replica; where there
were micro-batches, they make it one of these (`perf/micro_batch.py`). What it passes on per tuple is
the load of those after it; the source's rates, interval by interval, are what the simulation is
driven by.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

from penstock.compiled import Floats, frozen_floats
from penstock.domain.application import Application, Batching, Operator
from penstock.domain.errors import InputError
from penstock.perf.micro_batch import Batch, fixed_part_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSample:
    """Service times of one operator on one node over one interval."""

    operator: str
    tuples: int
    mean_s: float
    variance_s2: float | None  # around that mean, divided by the number of tuples; None: not measured
    speedup: float = 1.0  # of the node they were measured on
    selectivity: float | None = None  # tuples out per tuple in; None: not measured
    batch: Batch | None = None  # the mean of the micro-batches that ended; None: tuple by tuple

    def __post_init__(self) -> None:
        if self.tuples < 1:
            raise InputError(f"operator '{self.operator}': a sample of {self.tuples} tuples says nothing")
        if not (isfinite(self.mean_s) and self.mean_s > 0):
            raise InputError(
                f"operator '{self.operator}': mean service time {self.mean_s} s; it must be positive"
            )
        if self.variance_s2 is not None and not (isfinite(self.variance_s2) and self.variance_s2 >= 0):
            raise InputError(
                f"operator '{self.operator}': variance {self.variance_s2} s2; it cannot be negative"
            )
        if not self.speedup > 0:
            raise InputError(f"operator '{self.operator}': speedup {self.speedup}; it must be positive")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SystemModel:
    """What the Application Manager simulates."""

    application: Application
    rates: Floats  # tuples/s of the source, one per interval


def system_model(
    graph: Application,
    samples: Sequence[ServiceSample],
    rates: Sequence[float | None],
    *,
    trigger_s: float = 0.0,
) -> SystemModel:
    """The graph with service times and micro-batches as measured, driven by the rates as measured.

    An interval whose rate was not measured counts as the one before it (at the beginning,
    as the first that was measured): no load at all would be a much bolder guess.
    """
    known = {operator.name for operator in graph.operators}
    for sample in samples:
        if sample.operator not in known:
            raise InputError(
                f"application '{graph.name}': measured operator '{sample.operator}' is not in it"
            )
    operators = tuple(
        _as_measured(operator, [sample for sample in samples if sample.operator == operator.name], trigger_s)
        for operator in graph.operators
    )
    return SystemModel(application=replace(graph, operators=operators), rates=_without_gaps(rates))


def _as_measured(operator: Operator, samples: Sequence[ServiceSample], trigger_s: float) -> Operator:
    """Moments of all samples together, as on a node of speedup 1."""
    if not samples:
        raise InputError(f"operator '{operator.name}': no service time was measured; keep the naive shares")
    count = sum(sample.tuples for sample in samples)
    mean = sum(sample.tuples * sample.mean_s * sample.speedup for sample in samples) / count
    variance = _variance(operator, samples, mean)
    passed = [(sample.tuples, sample.selectivity) for sample in samples if sample.selectivity is not None]
    selectivity = operator.selectivity
    if passed:
        selectivity = sum(tuples * share for tuples, share in passed) / sum(tuples for tuples, _ in passed)
    return replace(
        operator,
        service_time_s=mean,
        service_scv=variance / mean**2,
        selectivity=selectivity,
        batching=_batching(samples, mean, trigger_s),
    )


def _batching(samples: Sequence[ServiceSample], service_time_s: float, trigger_s: float) -> Batching | None:
    """What the micro-batches took besides so much per tuple; None where there were none."""
    batches = [sample.batch for sample in samples if sample.batch is not None]
    if not batches:
        return None
    return Batching(fixed_s=fixed_part_s(batches, service_time_s), trigger_s=trigger_s)


def _variance(operator: Operator, samples: Sequence[ServiceSample], mean: float) -> float:
    within = [(sample, sample.variance_s2) for sample in samples if sample.variance_s2 is not None]
    between = [sample.tuples * (sample.mean_s * sample.speedup - mean) ** 2 for sample in samples]
    if within:
        # Within samples and between them: the law of total variance.
        return sum(
            sample.tuples * (variance * sample.speedup**2 + (sample.mean_s * sample.speedup - mean) ** 2)
            for sample, variance in within
        ) / sum(sample.tuples for sample, _ in within)
    if len(samples) < 2:
        raise InputError(
            f"operator '{operator.name}': the variance of service times has not been measured yet"
        )
    # Where an interval has a single task, all it tells is a mean of n tuples: n (mean_n - mean)^2.
    return sum(between) / (len(samples) - 1)


def _without_gaps(rates: Sequence[float | None]) -> Floats:
    measured = [rate for rate in rates if rate is not None]
    if not measured:
        raise InputError("no arrival rate was measured; there is nothing to simulate")
    latest = measured[0]
    filled = []
    for rate in rates:
        latest = latest if rate is None else rate
        filled.append(latest)
    return frozen_floats(filled)
