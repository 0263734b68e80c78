"""A load that comes three times: does a policy that knows the season do better from the second time on?"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from penstock.apps.feeding.load import Load
from penstock.apps.registry import application_entry
from penstock.bench.figure import Figure
from penstock.control.forecasting import Forecast
from penstock.domain.objective import Objective
from penstock.live.record import Interval, late_pct
from penstock.live.run import LiveRun
from penstock.live.settings import LiveSettings, controller_for
from penstock.reconfigure.method import Method
from penstock.runtimes.spark.cluster import ClusterError

_APPLICATION = "lookups"
# The load of `penstock compare --runtime spark`, three times.
_SHAPE, _LOW, _HIGH = "ramp", 25.0, 200.0  # tuples/s
_MOST_REPLICAS = 8
_TIMES, _SEASON_S = 3, 100.0
_SECONDS = _TIMES * _SEASON_S
_WAYS = {
    "with a forecast": Forecast(season_s=_SEASON_S),
    "without": Forecast(kind="last"),
}
STAGES = len(_WAYS)


def run_forecasts(*, stage: Callable[[str], None]) -> Iterator[Figure]:
    """Two runs of five minutes under `mpc`, the same but for what it is told of the load to come."""
    yield Figure(name="machine load before", value=os.getloadavg()[0], unit="")
    outside: dict[str, float] = {}
    for what, forecast in _WAYS.items():
        stage(f"{what}, {_SECONDS / 60:g} minutes")
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as work:
            live = _run(Path(work) / "run", forecast)
        later = after_the_first(live.kept.latest, live.began_s)
        late = late_pct(later, live.objective_s)
        if late is None:
            raise ClusterError(f"{what}: no response time was measured from the second rise on")
        outside[what] = late
        yield Figure(
            name=f"{what}: intervals outside {live.objective_s:g} s from the second rise on",
            value=outside[what],
            unit="%",
        )
        replicas = [sum(one.replicas.total for one in interval.seen.operators) for interval in later]
        yield Figure(
            name=f"{what}: replicas on average", value=sum(replicas) / max(len(replicas), 1), unit=""
        )
    with_it, without = (outside[what] for what in _WAYS)
    yield Figure(name="fewer outside with a forecast", value=without - with_it, unit="points", at_least=1e-9)


def after_the_first(intervals: Iterable[Interval], began_s: float) -> list[Interval]:
    """From shortly before the second rise on."""
    return [one for one in intervals if one.seen.at_s > began_s + _SEASON_S]


def _run(out: Path, forecast: Forecast) -> LiveRun:
    entry = application_entry(_APPLICATION)
    app = entry.on_spark(
        objective=Objective(response_time_s=entry.objective_s),
        max_replicas=_MOST_REPLICAS,
        protocol=Method.LIVE,
    )
    settings = LiveSettings(out=out, minutes=_SECONDS / 60, forecast=forecast)
    feeder = entry.feeder(Load(low=_LOW, high=_HIGH, shape=_SHAPE, seconds=_SECONDS, times=_TIMES))
    live = LiveRun(app, controller_for(app, policy="mpc"), settings, feeder)
    live.run()
    return live
