"""How soon the objective is kept again after the load rose to five times as much, with spares and without."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from penstock.apps.feeding.load import Load
from penstock.apps.registry import application_entry
from penstock.bench.figure import Figure
from penstock.domain.objective import Objective
from penstock.live.record import Interval, late_pct
from penstock.live.run import LiveRun
from penstock.live.settings import LiveSettings, controller_for
from penstock.reconfigure.method import Method

_WITHIN_S = {0: 40.0, 1: 15.0}  # spares of every chain -> wanted
STAGES = len(_WITHIN_S)
_APPLICATION = "lookups"
_LOW, _HIGH = 25.0, 125.0  # tuples/s
_MOST_REPLICAS = 6
_SECONDS = 180.0
_STEP_S, _FALL_S = _SECONDS / 4, _SECONDS * 3 / 4  # as `Load` has it


def run_step(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """Two runs of three minutes, decided for by the default policy."""
    yield Figure(name="machine load before", value=os.getloadavg()[0], unit="")
    for spares, wanted_s in _WITHIN_S.items():
        what = "with a spare" if spares else "without spares"
        stage(f"{what}, {_SECONDS / 60:g} minutes")
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as work:
            live = _run(Path(work) / "run", spares)
        yield from figures(what, live.kept.latest, live.began_s, live.objective_s, wanted_s)


def load() -> Load:
    return Load(low=_LOW, high=_HIGH, shape="step", seconds=_SECONDS)


def _run(out: Path, spares: int) -> LiveRun:
    entry = application_entry(_APPLICATION)
    app = entry.on_spark(
        objective=Objective(response_time_s=entry.objective_s),
        max_replicas=_MOST_REPLICAS,
        protocol=Method.LIVE,
    )
    settings = LiveSettings(out=out, minutes=_SECONDS / 60, spares=spares)
    live = LiveRun(app, controller_for(app), settings, entry.feeder(load()))
    live.run()
    return live


def figures(
    what: str, intervals: Iterable[Interval], began_s: float, objective_s: float, wanted_s: float
) -> Iterator[Figure]:
    """Of the time in which the load is high. A run that never comes back is outside for all of it."""
    step_s, fall_s = began_s + _STEP_S, began_s + _FALL_S
    high = [one for one in intervals if step_s < one.seen.at_s <= fall_s]
    outside = [one.seen.at_s for one in high if late_pct([one], objective_s) != 0.0]
    back_s = max(outside, default=step_s) - step_s
    if not high or outside[-1:] == [high[-1].seen.at_s]:
        back_s = fall_s - step_s
    yield Figure(
        name=f"{what}: inside {objective_s:g} s again after", value=back_s, unit="s", at_most=wanted_s
    )
    most = max((sum(o.replicas.total for o in one.seen.operators) for one in high), default=0)
    yield Figure(name=f"{what}: most replicas", value=most, unit="")
