"""The same load for several contenders, one run after another.

A contender is a policy, a fixed number of replicas, or Spark's own dynamic allocation.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path

from penstock.apps.entry import AppEntry
from penstock.apps.feeding.load import Load
from penstock.control.spec import Manager
from penstock.domain.application import Application
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.live.fixed_replicas import STATIC_UTILISATION
from penstock.live.run import LiveRun
from penstock.live.settings import INTERVAL_S, LiveSettings, controller_for
from penstock.live.side_by_side import DYNAMIC_ALLOCATION, STATIC_MEAN, STATIC_PEAK
from penstock.perf.traffic import visits
from penstock.reconfigure.method import Method


def prepared(
    entry: AppEntry,
    contenders: Sequence[Manager],
    load: Load,
    *,
    base: LiveSettings,
    slo_s: float | None,
    max_replicas: int,
    interval_s: float = INTERVAL_S,
) -> list[LiveRun]:
    """A run for each, none of them started: what cannot be run is reported before anything is."""
    return [
        _run_of(
            one,
            entry,
            load,
            base=base,
            slo_s=slo_s,
            max_replicas=max_replicas,
            interval_s=interval_s,
        )
        for one in contenders
    ]


def _run_of(
    contender: Manager,
    entry: AppEntry,
    load: Load,
    *,
    base: LiveSettings,
    slo_s: float | None,
    max_replicas: int,
    interval_s: float,
) -> LiveRun:
    name, rates = contender.name, load.trace().rates
    app = entry.on_spark(
        objective=Objective(response_time_s=entry.objective_s if slo_s is None else slo_s),
        max_replicas=max_replicas,
        protocol=Method.LIVE,
    )
    joined = entry.joined
    settings = replace(base, out=base.out / name.replace(":", "-"), label=name, joined=joined)
    # It watches, where somebody else decides or nobody does.
    controller = controller_for(app, interval_s=interval_s, advise=True, joined=joined)
    if name in (STATIC_PEAK, STATIC_MEAN):
        rate = float(rates.max() if name == STATIC_PEAK else rates.mean())
        fixed = static_replicas(entry.checked_live_graph(max_replicas), rate)
        settings = replace(settings, replicas_of=fixed)
    elif name == DYNAMIC_ALLOCATION:
        settings = replace(settings, spark_allocates=True)
    else:
        controller = controller_for(app, policy=contender, interval_s=interval_s, joined=joined)
    return LiveRun(app, controller, settings, entry.feeder(load))


def static_replicas(graph: Application, rate: float) -> dict[str, int]:
    """Replicas that carry this load of a source with some room, from known service times."""
    reached = visits(graph)
    busy = {one.name: rate * reached[one.name] * one.service_time_s for one in graph.operators}
    return {
        one.name: min(max(ceil(busy[one.name] / STATIC_UTILISATION), 1), one.max_replicas)
        for one in graph.operators
    }


def check_out(out: Path) -> Path:
    """The folder of all runs, which must be new."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"--out {out}: not an empty folder; give another")
    return out
