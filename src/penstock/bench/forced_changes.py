"""What reconfigurations cost when they never end: top-routes changed at every interval, by both protocols."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

from penstock.apps.feeding.load import Load
from penstock.apps.registry import application_entry
from penstock.bench.figure import Figure
from penstock.domain.objective import Objective
from penstock.live.run import LiveRun
from penstock.live.settings import LiveSettings, controller_for
from penstock.reconfigure.method import Method
from penstock.reconfigure.words import Ending, Record

STAGES = len(Method)
_MINUTES = 4.0
_TRIPS = 40.0  # per second
_FEWEST = 5


def run_forced_changes(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """Two runs of a few minutes each; nothing else should run meanwhile."""
    for method in Method:
        stage(f"{method.value}, {_MINUTES:g} minutes")
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as place:
            yield from figures(method, _forced(method, Path(place) / "run"))


def _forced(method: Method, out: Path) -> list[Record]:
    load = Load(low=_TRIPS, shape="constant", seconds=60 * _MINUTES)
    entry = application_entry("top-routes")
    objective = Objective(response_time_s=entry.objective_s)
    app = entry.on_spark(objective=objective, max_replicas=2, protocol=method)
    settings = LiveSettings(out=out, minutes=_MINUTES, force_scaling=True)
    live = LiveRun(app, controller_for(app), settings, entry.feeder(load))
    live.run()
    return list(live.kept.records)


def figures(method: Method, records: Sequence[Record]) -> Iterator[Figure]:
    """Median and worst, over replicas added and over all changes."""
    done = [one for one in records if one.outcome is Ending.DONE and not one.repair]
    added = [one for one in done if one.change.add]
    yield Figure(name=f"{method.value}: replicas added", value=len(added), unit="", at_least=_FEWEST)
    ready = [one.node_ready_at_s - one.granted_at_s for one in added if one.node_ready_at_s is not None]
    tasks = [one.first_task_at_s - one.granted_at_s for one in added if one.first_task_at_s is not None]
    for what, seconds in (
        ("grant to executor", ready),
        ("grant to first task on tuples", tasks),
        (f"downtime, {len(done)} changes", [one.downtime_s for one in done]),
    ):
        if seconds:
            yield Figure(name=f"{method.value}: {what}, median", value=median(seconds), unit="s")
            yield Figure(name=f"{method.value}: {what}, longest", value=max(seconds), unit="s")
