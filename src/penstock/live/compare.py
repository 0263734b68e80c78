"""The same load, one run after another: under control, and with a fixed number of replicas."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path

from penstock.apps.entry import AppEntry
from penstock.apps.feeding.load import Load
from penstock.control.spec import Manager
from penstock.domain.application import Application
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.live.record import Interval, Summary
from penstock.live.run import LiveRun
from penstock.live.settings import LiveSettings, controller_for
from penstock.reconfigure.method import Method

STATIC_PEAK = "static-peak"
STATIC_MEAN = "static-mean"


def compared(
    entry: AppEntry,
    policies: Sequence[Manager],
    load: Load,
    *,
    base: LiveSettings,
    slo_s: float | None,
    max_replicas: int,
    began: Callable[[str], None] = lambda label: None,
    on_interval: Callable[[Interval], None] = lambda interval: None,
) -> Iterator[Summary]:
    """A summary of every run. The static ones have the replicas the peak or the mean of the load needs."""
    rates = load.trace().rates
    for policy in policies:
        label = policy.name
        began(label)
        app = entry.on_spark(
            objective=Objective(response_time_s=entry.objective_s if slo_s is None else slo_s),
            max_replicas=max_replicas,
            protocol=Method.LIVE,
        )
        settings = replace(base, out=base.out / label.replace(":", "-"), label=label)
        if label in (STATIC_PEAK, STATIC_MEAN):
            rate = float(rates.max() if label == STATIC_PEAK else rates.mean())
            replicas = static_replicas(entry.checked_live_graph(max_replicas), rate)
            settings = replace(settings, replicas_of=replicas)
            controller = controller_for(app, advise=True)
        else:
            controller = controller_for(app, policy=policy)
        yield LiveRun(app, controller, settings, entry.feeder(load), on_interval=on_interval).run()


def static_replicas(graph: Application, rate: float, *, utilisation: float = 0.75) -> dict[str, int]:
    """Replicas that carry this load at this utilisation, from known service times."""
    return {
        operator.name: min(max(ceil(rate * operator.service_time_s / utilisation), 1), operator.max_replicas)
        for operator in graph.operators
    }


def check_out(out: Path) -> Path:
    """The folder of all runs, which must be new."""
    if out.exists() and any(out.iterdir()):
        raise InputError(f"--out {out}: the folder is not empty; give another")
    return out
