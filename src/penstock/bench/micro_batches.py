"""How far the model of micro-batches is from what is measured: calibrated at one load, asked about others.

`lookups`, whose first operator waits 20 ms for every tuple, with a fixed number of replicas and one steady
load after the other. What was measured under one of them makes the model, as it does before policies are
trained; the others say what is true.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from penstock.apps.feeding.load import Load
from penstock.apps.registry import application_entry
from penstock.bench.figure import Figure
from penstock.compiled import frozen_floats
from penstock.control.build import measured_operator
from penstock.control.spec import ControllerSpec
from penstock.data.traces import write_trace
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation
from penstock.domain.trace import Trace
from penstock.live.controlling import measured
from penstock.live.run import LiveRun
from penstock.live.settings import LiveSettings, controller_for
from penstock.perf.deployments import handle_of
from penstock.perf.operator import response_time
from penstock.perf.queueing import m_g_1
from penstock.reconfigure.method import Method
from penstock.training.pretrain import model_of

_APPLICATION = "lookups"
JUDGED = "lookup"  # its first operator: 50 tuples/s fill a replica
_MOST_REPLICAS = 4
_INTERVAL_S = 3.0
LARGEST_ERROR_PCT = 30.0  # a replica or two, where ten are needed

# Replicas -> tuples/s, one load after the other: .2, .4 and .7 of what they can take.
_RUNS = {1: (10.0, 20.0, 35.0), 2: (20.0, 40.0, 70.0), 4: (40.0, 80.0, 140.0)}
STAGES = len(_RUNS)


class Point(NamedTuple):
    """A load and the replicas that carry it."""

    rate: float  # tuples/s
    replicas: int

    def __str__(self) -> str:
        return f"{self.rate:g} tuples/s on {self.replicas}"


_CALIBRATED_AT = Point(20.0, 1)


class Times(NamedTuple):
    """Of a run."""

    warm_s: float = (
        25.0  # at the lowest load: the first micro-batches are slow, and what waited is worked off
    )
    settling_s: float = 9.0  # from one load to the next
    judged_s: float = 18.0  # at every load, once settled

    @property
    def each_s(self) -> float:
        return self.settling_s + self.judged_s


_USUAL = Times()


class Measured(NamedTuple):
    """One load on some replicas: what was seen, and what came of the operator that is judged."""

    point: Point
    controller: ControllerSpec
    trigger_s: float
    seen: tuple[ApplicationObservation, ...]
    rate: float  # tuples/s that really came
    response_time_s: float


class Prediction(NamedTuple):
    """What the model said about a point, and what was measured."""

    point: Point
    predicted_s: float
    queue_s: float  # what M/G/1 with the same service times would have said
    measured_s: float

    @property
    def error_pct(self) -> float:
        return 100 * (self.predicted_s / self.measured_s - 1)

    def __str__(self) -> str:
        return (
            f"{self.point}: predicted {self.predicted_s:.3g} s, measured {self.measured_s:.3g} s "
            f"({self.error_pct:+.0f} %), as M/G/1 {self.queue_s:.3g} s"
        )


def run_micro_batches(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """A run of two minutes for every number of replicas; nothing else should run meanwhile."""
    yield Figure(name="machine load before", value=os.getloadavg()[0], unit="")
    found: list[Measured] = []
    for replicas, rates in _RUNS.items():
        stage(f"{replicas} replicas at {', '.join(f'{rate:g}' for rate in rates)} tuples/s")
        found += run_at(replicas, rates)
    known = next(one for one in found if one.point == _CALIBRATED_AT)
    for one in found:
        if one is not known:
            yield from figures(predicted(known, one))


def run_at(replicas: int, rates: Sequence[float], times: Times = _USUAL) -> list[Measured]:
    """An application that nobody changes, under one steady load after the other."""
    entry = application_entry(_APPLICATION)
    app = entry.on_spark(
        objective=Objective(response_time_s=entry.objective_s),
        max_replicas=_MOST_REPLICAS,
        protocol=Method.LIVE,
    )
    controller = controller_for(app, interval_s=_INTERVAL_S, advise=True)
    seconds = times.warm_s + times.each_s * len(rates)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as work:
        trace = Path(work) / "rates.txt"
        slots = [min(rates)] * round(times.warm_s) + [
            rate for rate in rates for _ in range(round(times.each_s))
        ]
        write_trace(Trace("rates", np.array(slots)), trace)
        settings = LiveSettings(out=Path(work) / "run", minutes=seconds / 60, replicas_of={JUDGED: replicas})
        live = LiveRun(app, controller, settings, entry.feeder(Load(rates=trace)))
        live.run()
    seen = [(one.seen.at_s - live.began_s, one.seen) for one in live.kept.latest]
    ends_s = [times.warm_s + times.each_s * (index + 1) for index in range(len(rates))]
    return [
        measured_at(
            Point(rate, replicas),
            controller,
            settings.trigger_s,
            [one for at_s, one in seen if end_s - times.judged_s < at_s <= end_s],
        )
        for rate, end_s in zip(rates, ends_s, strict=True)
    ]


def measured_at(
    point: Point, controller: ControllerSpec, trigger_s: float, seen: Sequence[ApplicationObservation]
) -> Measured:
    """Means over the intervals in which micro-batches of the operator ended, by the tuples that came."""
    judged = [
        (one.arrival_rate, one.response_time_s)
        for whole in seen
        for one in whole.operators
        if one.operator == JUDGED
        and one.batch_s is not None
        and one.arrival_rate
        and one.response_time_s is not None
    ]
    if not judged:
        raise InputError(f"{point}: no micro-batch of '{JUDGED}' ended")
    arrived = sum(rate for rate, _ in judged)
    return Measured(
        point=point,
        controller=controller,
        trigger_s=trigger_s,
        seen=tuple(seen),
        rate=arrived / len(judged),
        response_time_s=sum(rate * took_s for rate, took_s in judged) / arrived,
    )


def predicted(known: Measured, found: Measured) -> Prediction:
    """What policies trained on the one believe of the other, at the load that really came."""
    declared = known.controller
    model = model_of(
        declared.application,
        known.seen,
        declared.node_types,
        interval_s=declared.interval_s,
        trigger_s=known.trigger_s,
    )
    spec = measured(declared, model)
    one = next(one for one in spec.operators if one.name == JUDGED)
    operator = measured_operator(spec, one, frozen_floats(one.rates))
    space = operator.deployments
    here = handle_of(space, Replicas((found.point.replicas,)))
    one_by_one = m_g_1(one.service_time_s, one.service_scv)
    return Prediction(
        point=found.point,
        predicted_s=float(response_time(operator.queue, space, here, found.rate)),
        queue_s=float(response_time(one_by_one, space, here, found.rate)),
        measured_s=found.response_time_s,
    )


def figures(one: Prediction) -> Iterator[Figure]:
    """Of one point; the error counts whichever way it goes."""
    yield Figure(name=f"{one.point}: response time measured", value=one.measured_s, unit="s")
    yield Figure(name=f"{one.point}: as micro-batches predict", value=one.predicted_s, unit="s")
    yield Figure(name=f"{one.point}: as M/G/1 predicts", value=one.queue_s, unit="s")
    yield Figure(
        name=f"{one.point}: error of micro-batches",
        value=abs(one.error_pct),
        unit="%",
        at_most=LARGEST_ERROR_PCT,
    )
