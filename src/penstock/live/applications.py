"""Applications that can be run by name, and what feeds them."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from penstock.apps.feeding.replayer import Replayer
from penstock.apps.feeding.schedule import ByRates, ByTimes, Schedule, Shape
from penstock.apps.feeding.tuples import GeneratedTrips, Ids, RecordedTrips, Tuples
from penstock.apps.pacing import paced
from penstock.apps.paper_graphs import GRAPHS, graph_named
from penstock.apps.top_routes.query import RESULTS, SOURCE, export, top_routes
from penstock.data.traces import read_trace
from penstock.domain.application import Application, Operator, pipeline
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.domain.trace import Trace
from penstock.live.run import FeederOf
from penstock.reconfigure.words import Method
from penstock.runtimes.spark.feed import Feed
from penstock.runtimes.spark.stream_log import StreamLog
from penstock.runtimes.spark.topology import App

TOP_ROUTES = "top-routes"
PACED = "paced"
APPLICATIONS = (TOP_ROUTES, PACED, *(f"paced-{name}" for name in GRAPHS))
_PACED_SLOWDOWN = 5.0  # the graphs of Russo 2023 serve hundreds of tuples a second; a small cluster, tens


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is brought in, and how fast."""

    low: float = 40.0  # tuples/s
    high: float = 160.0
    shape: str = "step"  # step, sine or constant
    seconds: float = 240.0
    rates: Path | None = None  # a trace instead of a shape, one slot after another
    slot_s: float = 1.0
    input: Path | None = None  # recorded trips instead of made-up ones
    acceleration: float = 60.0
    amplification: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        if self.shape not in ("step", "sine", "constant"):
            raise InputError(f"load '{self.shape}': unknown; choose step, sine or constant")
        for what, value in (("low", self.low), ("high", self.high), ("seconds", self.seconds)):
            if not 0 < value < float("inf"):
                raise InputError(f"load: {what}={value}; it must be positive")

    def schedule(self) -> Schedule:
        return ByRates(self.trace(), slot_s=self.slot_s if self.rates is not None else 1.0)

    def trace(self) -> Trace:
        """Tuples/s, slot by slot."""
        if self.rates is not None:
            return read_trace(self.rates)
        slots = Shape(max(round(self.seconds), 3))
        match self.shape:
            case "constant":
                return slots.constant(self.low)
            case "sine":
                return slots.sine(self.low, self.high, period=slots.slots)
            case _:
                return slots.step(self.low, self.high, begin=slots.slots // 4, end=slots.slots * 3 // 4)


class Feeding(Replayer):
    """A replayer as a live run wants it."""

    @property
    def problem(self) -> str | None:
        return None if self.failure is None else str(self.failure)


def application(name: str, *, slo_s: float | None, max_replicas: int, protocol: Method = Method.LIVE) -> App:
    """An application by name, with its own objective unless another is given."""
    objective = Objective(response_time_s=10.0 if slo_s is None else slo_s)
    if name == TOP_ROUTES:
        return top_routes(objective=objective, max_replicas=max_replicas, protocol=protocol)
    if name == PACED:
        return paced(three_operators(max_replicas), objective=objective, protocol=protocol)
    graph = name.removeprefix("paced-")
    if graph not in GRAPHS:
        raise InputError(f"application '{name}': unknown; choose one of {', '.join(APPLICATIONS)}")
    return paced(
        graph_named(graph, max_replicas), objective=objective, slowdown=_PACED_SLOWDOWN, protocol=protocol
    )


def three_operators(max_replicas: int) -> Application:
    """A pipeline whose middle operator is the slow one: 1, 8 and 2 ms a tuple."""
    return pipeline(
        PACED,
        Operator(name="light", service_time_s=0.001, service_scv=0.5, max_replicas=max_replicas),
        Operator(name="heavy", service_time_s=0.008, service_scv=0.5, max_replicas=max_replicas),
        Operator(name="medium", service_time_s=0.002, service_scv=0.5, max_replicas=max_replicas),
    )


def static_replicas(
    name: str, rate: float, *, max_replicas: int, utilisation: float = 0.75
) -> dict[str, int]:
    """Replicas that carry this load at this utilisation, from the service times a paced application has."""
    if name != PACED:
        raise InputError(f"application '{name}': its service times are not known beforehand; compare {PACED}")
    return {
        operator.name: min(max(ceil(rate * operator.service_time_s / utilisation), 1), max_replicas)
        for operator in three_operators(max_replicas).operators
    }


def feeder(name: str, load: Load) -> FeederOf:
    """Who brings tuples into the application, as the load says."""
    if load.input is not None and name != TOP_ROUTES:
        raise InputError(f"--input {load.input}: recorded trips are for {TOP_ROUTES}; {name} makes its own")

    tuples: Tuples
    schedule: Schedule
    if load.input is not None:
        trips = RecordedTrips.read(load.input, amplification=load.amplification, seed=load.seed)
        tuples, schedule = trips, ByTimes(trips.times_s, acceleration=load.acceleration)
    elif name == TOP_ROUTES:
        schedule = load.schedule()
        tuples = GeneratedTrips(schedule, acceleration=load.acceleration, seed=load.seed)
    else:
        schedule, tuples = load.schedule(), Ids()

    def made(feeds: Mapping[str, Feed]) -> Feeding:
        source = SOURCE if name == TOP_ROUTES else next(iter(feeds))
        return Feeding(feeds[source], tuples, schedule)

    return made


def export_results(name: str, app: App, work: Path, results: Path) -> str:
    """Put what came out where people look for it; returns what to say about it."""
    results.mkdir(parents=True, exist_ok=True)
    if name == TOP_ROUTES:
        rows = export(StreamLog(work / "streams" / RESULTS), results / "top-routes.csv")
        return f"{rows} rows in {results / 'top-routes.csv'}"
    counts = {sink: _tuples(StreamLog(work / "streams" / origin)) for sink, origin in app.sinks.items()}
    return ", ".join(f"{tuples} tuples at {sink}" for sink, tuples in counts.items())


def _tuples(log: StreamLog) -> int:
    return sum(batch.tuples for batch in log.batches(0, log.end()))
