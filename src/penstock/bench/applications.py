"""How fast the loop that drives a live run simulates applications under managers.

The baseline is the same loop as in a live run: it copies what managers remember before every
decision and puts every reason into words. A simulation never goes back and nobody reads its reasons.
"""

import time
from collections.abc import Iterator

from penstock.bench.figure import Figure
from penstock.compiled import Floats
from penstock.control.loop import tick
from penstock.control.ports import Unwritten
from penstock.control.spec import Manager
from penstock.simulation.managed import ready
from penstock.simulation.play import run
from penstock.simulation.spec import ManagedApplication

_SLOTS, _LIVE_SLOTS, _REPEATS = 3_000, 300, 2

APPLICATIONS = (
    ManagedApplication(
        operator_policy=Manager("threshold-c"),
        application="diamond",
        application_policy=Manager("token-bucket"),
        slo_s=0.3,
    ),
    ManagedApplication(
        operator_policy=Manager("ql-pds-plus"),
        application="diamond",
        application_policy=Manager("grant-all"),
        slo_s=0.3,
    ),
    ManagedApplication(
        operator_policy=Manager("fixed"),
        application="pipeline",
        application_policy=Manager("drs-c"),
        infrastructure="A:2",
        slo_s=0.3,
    ),
)


def application_figures(rates: Floats) -> Iterator[Figure]:
    for spec in APPLICATIONS:
        slots = rates[:_SLOTS]
        simulated = max(run(spec, slots, training=slots).slots_per_s for _ in range(_REPEATS))
        live = max(_as_live(spec, rates[:_LIVE_SLOTS]) for _ in range(_REPEATS))
        name = f"{spec.application}, {spec.label}"
        yield Figure(name=name, value=simulated / 1e3, unit="k slots/s")
        yield Figure(name=f"{name}, over the loop as it runs live", value=simulated / live, unit="x")


def _as_live(spec: ManagedApplication, rates: Floats) -> float:
    """Slots/s of the loop when it copies memories and gives reasons."""
    made = ready(spec, rates, rates)
    memory, journal = made.memory, Unwritten()
    began = time.perf_counter()
    while not made.simulated.finished:
        _, memory = tick(made.controller, memory, made.simulated, journal, made.simulated)
    return rates.size / (time.perf_counter() - began)
