"""How far the model of micro-batches is from what is measured: calibrated at one load, asked about others.

`lookups`, whose first operator waits 20 ms for every tuple, under a steady load and with a fixed number of
replicas, one run for each. What the first run measured makes the model, as it does before policies are
trained; the other runs say what is true.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from penstock.apps.feeding.load import Load
from penstock.apps.registry import application_entry
from penstock.bench.figure import Figure
from penstock.compiled import frozen_floats
from penstock.control.build import measured_operator
from penstock.control.spec import ControllerSpec
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation
from penstock.live.controlling import measured
from penstock.live.run import LiveRun
from penstock.live.settings import LiveSettings, controller_for
from penstock.perf.deployments import handle_of
from penstock.perf.operator import response_time
from penstock.perf.queueing import m_g_1
from penstock.reconfigure.method import Method
from penstock.training.pretrain import model_of

_APPLICATION = "lookups"
_JUDGED = "lookup"  # its first operator
_MOST_REPLICAS = 4
_INTERVAL_S = 3.0
_WARM_S = 15.0  # the first micro-batches of a query are slow
_SECONDS = 60.0
_LARGEST_ERROR_PCT = 25.0


class Point(NamedTuple):
    """A load and the replicas that carry it."""

    rate: float  # tuples/s
    replicas: int

    def __str__(self) -> str:
        return f"{self.rate:g} tuples/s on {self.replicas}"


CALIBRATED_AT = Point(20.0, 1)
ASKED_ABOUT = (Point(40.0, 1), Point(40.0, 2), Point(75.0, 2), Point(100.0, 3), Point(150.0, 4))
STAGES = 1 + len(ASKED_ABOUT)


class Measured(NamedTuple):
    """One run: what was seen of the application once it was warm, and of the operator that is judged."""

    controller: ControllerSpec
    seen: tuple[ApplicationObservation, ...]
    rate: float  # tuples/s
    response_time_s: float
    trigger_s: float


class Prediction(NamedTuple):
    """A point, what the model said about it, and what was measured."""

    point: Point
    predicted_s: float
    queue_s: float  # what M/G/1 with the same service times would have said
    measured_s: float

    @property
    def error_pct(self) -> float:
        return 100 * (self.predicted_s / self.measured_s - 1)


def run_micro_batches(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """A run of a minute for every point; nothing else should run meanwhile."""
    yield Figure(name="machine load before", value=os.getloadavg()[0], unit="")
    stage(f"calibrating: {CALIBRATED_AT}, {_SECONDS:g} s")
    known = run_at(CALIBRATED_AT, seconds=_SECONDS, warm_s=_WARM_S)
    yield from figures(predicted(known, CALIBRATED_AT, known))
    for point in ASKED_ABOUT:
        stage(f"{point}, {_SECONDS:g} s")
        yield from figures(predicted(known, point, run_at(point, seconds=_SECONDS, warm_s=_WARM_S)))


def run_at(point: Point, *, seconds: float, warm_s: float) -> Measured:
    """An application that nobody changes, under a steady load."""
    entry = application_entry(_APPLICATION)
    app = entry.on_spark(
        objective=Objective(response_time_s=entry.objective_s),
        max_replicas=_MOST_REPLICAS,
        protocol=Method.LIVE,
    )
    controller = controller_for(app, interval_s=_INTERVAL_S, advise=True)
    load = Load(low=point.rate, shape="constant", seconds=seconds)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as work:
        settings = LiveSettings(
            out=Path(work) / "run", minutes=seconds / 60, replicas_of={_JUDGED: point.replicas}
        )
        live = LiveRun(app, controller, settings, entry.feeder(load))
        live.run()
    seen = [one.seen for one in live.intervals if one.seen.at_s - live.began_s > warm_s]
    return measured_in(controller, seen, settings.trigger_s)


def measured_in(
    controller: ControllerSpec, seen: Sequence[ApplicationObservation], trigger_s: float
) -> Measured:
    """Means over intervals in which micro-batches of the operator ended, by the tuples in them."""
    mine = [one for whole in seen for one in whole.operators if one.operator == _JUDGED]
    judged = [
        (one.arrival_rate, one.response_time_s)
        for one in mine
        if one.batch_s is not None and one.arrival_rate and one.response_time_s is not None
    ]
    if not judged:
        raise InputError(f"operator '{_JUDGED}': no micro-batch ended once it was warm")
    arrived = sum(rate for rate, _ in judged)
    return Measured(
        controller=controller,
        seen=tuple(seen),
        rate=arrived / len(judged),
        response_time_s=sum(rate * took_s for rate, took_s in judged) / arrived,
        trigger_s=trigger_s,
    )


def predicted(known: Measured, point: Point, found: Measured) -> Prediction:
    """What policies trained on the one run believe of the other, at the load it really had."""
    declared = known.controller
    model = model_of(
        declared.application,
        known.seen,
        declared.node_types,
        interval_s=declared.interval_s,
        trigger_s=known.trigger_s,
    )
    spec = measured(declared, model)
    one = next(one for one in spec.operators if one.name == _JUDGED)
    operator = measured_operator(spec, one, frozen_floats(one.rates))
    space = operator.deployments
    here = handle_of(space, Replicas((point.replicas,)))
    one_by_one = m_g_1(one.service_time_s, one.service_scv)
    return Prediction(
        point=point,
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
        at_most=_LARGEST_ERROR_PCT,
    )
