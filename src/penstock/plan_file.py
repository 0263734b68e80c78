"""Planning problems in files: an application, a network, what runs now, in TOML; unknown keys are errors."""

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from penstock.domain.errors import InputError
from penstock.files import content_of
from penstock.perf.queueing import MeasuredCurve, QueueModel, m_g_1, measured
from penstock.planning.problem import (
    Engine,
    Goal,
    Host,
    Network,
    Plan,
    PlannedOperator,
    PlannedStream,
    Problem,
    Readings,
)
from penstock.planning.spark_engine import EXECUTOR, FIRST_TASK, on_spark

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class OperatorEntry(_Strict):
    name: str
    service_rate: Positive | None = None  # tuples/s of one replica on a host of speedup 1
    service_scv: NotNegative = 1.0  # M/M/1 by default
    curve: list[tuple[NotNegative, Positive]] | None = None  # measured: (tuples/s, seconds)
    rate: NotNegative | None = None  # tuples/s it works on; of a source, what it emits
    selectivity: NotNegative = 1.0
    demand: Positive = 1.0
    cost: NotNegative = 1.0
    code_bytes: NotNegative = 0.0
    state_bytes: NotNegative = 0.0
    max_replicas: Annotated[int, Field(ge=1)] = 1
    hosts: list[str] | None = None  # where it may run; one name pins it

    def queue(self) -> QueueModel | None:
        if self.curve is not None:
            if self.service_rate is not None:
                raise InputError(f"operator '{self.name}': give service_rate or curve, not both")
            rates, times_s = zip(*self.curve, strict=True) if self.curve else ((), ())
            return measured(1.0, MeasuredCurve(rates=rates, times_s=times_s))
        return None if self.service_rate is None else m_g_1(1 / self.service_rate, self.service_scv)


class StreamEntry(_Strict):
    origin: str = Field(alias="from")
    target: str = Field(alias="to")
    rate: NotNegative | None = None  # what the origin puts out, unless given


class GoalEntry(_Strict):
    max_response_time_s: Positive
    max_cost: Positive
    max_downtime_s: Positive
    weights: tuple[NotNegative, NotNegative, NotNegative] = (0.3, 0.3, 0.4)


class EngineEntry(_Strict):
    sync_s: NotNegative = 0.0
    restarts_all: bool = False


class ReadingsEntry(_Strict):
    speed_in_queue: bool = False
    traffic_per_host: bool = False
    round_trip_for_nothing: bool = True


class ApplicationFile(_Strict):
    operators: list[OperatorEntry]
    streams: list[StreamEntry] = []
    goal: GoalEntry
    engine: EngineEntry = EngineEntry()
    readings: ReadingsEntry = ReadingsEntry()


class HostEntry(_Strict):
    name: str
    capacity: NotNegative
    speedup: Positive = 1.0
    price: NotNegative = 1.0
    spawn_s: NotNegative = 0.0
    store_delay_s: NotNegative = 0.0
    upload_bytes_s: Positive | None = None
    download_bytes_s: Positive | None = None
    local_bytes_s: Positive | None = None


class LinkEntry(_Strict):
    a: str
    b: str
    delay_s: NotNegative
    price: NotNegative | None = None  # of one tuple/s; the network's, unless given
    both_ways: bool = True


class NetworkFile(_Strict):
    hosts: list[HostEntry]
    links: list[LinkEntry] = []
    link_price: NotNegative = 0.0
    routing: Literal["shortest", "direct"] = "shortest"  # over other hosts, or every link is given


class CurrentFile(_Strict):
    deployment: dict[str, list[str]]


Model = TypeVar("Model", bound=BaseModel)


def read_problem(
    application: Path,
    network: Path,
    current: Path | None = None,
    *,
    weights: tuple[float, float, float] | None = None,
) -> Problem:
    """The problem these files describe; whatever is wrong names the file."""
    asked = _read(application, ApplicationFile)
    there = _read(network, NetworkFile)
    now: Plan | None = None
    if current is not None:
        now = {name: tuple(hosts) for name, hosts in _read(current, CurrentFile).deployment.items()}
    try:
        operators, streams = _graph(asked)
    except InputError as problem:
        raise InputError(f"{application}: {problem}") from problem
    try:
        made = _network(there)
    except InputError as problem:
        raise InputError(f"{network}: {problem}") from problem
    response_time, cost, downtime = weights or asked.goal.weights
    try:
        return Problem(
            operators=operators,
            streams=streams,
            network=made,
            goal=Goal(
                response_time=response_time,
                cost=cost,
                downtime=downtime,
                max_response_time_s=asked.goal.max_response_time_s,
                max_cost=asked.goal.max_cost,
                max_downtime_s=asked.goal.max_downtime_s,
            ),
            current=now,
            engine=Engine(**asked.engine.model_dump()),
            readings=Readings(**asked.readings.model_dump()),
        )
    except InputError as problem:
        where = current if current is not None and "current deployment" in str(problem) else application
        raise InputError(f"{where}: {problem}") from problem


class FigureEntry(BaseModel):
    name: str
    value: float


class BenchFile(BaseModel):
    """What `penstock bench --json` prints; other keys are of no interest."""

    figures: list[FigureEntry]


def with_times_of(problem: Problem, bench: Path) -> Problem:
    """The same on an engine that restarts everything, with what `bench reconfigurations --json` measured."""
    try:
        seen = BenchFile.model_validate_json(_text(bench))
    except ValidationError as problem_there:
        raise InputError(
            f"{bench}: not what `penstock bench reconfigurations --json` prints"
        ) from problem_there

    def median_s(name: str) -> float:
        found = [one.value for one in seen.figures if one.name.startswith(f"{name}, median")]
        if not found:
            raise InputError(f"{bench}: '{name}' was not measured")
        return found[0]

    executor_s, first_task_s = median_s(EXECUTOR), median_s(FIRST_TASK)
    try:
        return on_spark(problem, executor_s=executor_s, first_task_s=first_task_s)
    except InputError as wrong:
        raise InputError(f"{bench}: {wrong}") from wrong


def _text(path: Path) -> str:
    try:
        return content_of(path).decode("utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path}: cannot read: {getattr(problem, 'strerror', None) or problem}") from problem


def _read(path: Path, kind: type[Model]) -> Model:
    text = _text(path)
    try:
        said = tomllib.loads(text)
    except RecursionError:  # of the parser, which follows every bracket
        raise InputError(f"{path}: no TOML: brackets within brackets without end") from None
    except ValueError as problem:  # no TOML, or a number of thousands of digits
        raise InputError(f"{path}: no TOML: {problem}") from problem
    try:
        return kind.model_validate(said)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: {where}: {first['msg']}") from problem


def _graph(asked: ApplicationFile) -> tuple[tuple[PlannedOperator, ...], tuple[PlannedStream, ...]]:
    """Operators in an order in which streams go forward, with the rates that follow from the sources'."""
    entries = {one.name: one for one in asked.operators}
    if len(entries) < len(asked.operators):
        names = [one.name for one in asked.operators]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"operator '{twice}' appears twice")
    for stream in asked.streams:
        for end in (stream.origin, stream.target):
            if end not in entries:
                raise InputError(f"stream {stream.origin}->{stream.target}: unknown operator '{end}'")
    into: dict[str, float] = {}
    streams: list[PlannedStream] = []
    operators: list[PlannedOperator] = []
    waiting = list(asked.operators)
    while waiting:
        done = {one.name for one in operators}
        ready = [
            one
            for one in waiting
            if all(stream.origin in done for stream in asked.streams if stream.target == one.name)
        ]
        if not ready:
            raise InputError(f"a cycle through {', '.join(one.name for one in waiting)}")
        for one in ready:
            arrives = [stream for stream in streams if stream.target == one.name]
            if one.rate is None and not arrives:
                raise InputError(f"operator '{one.name}' has no incoming stream: give its rate")
            rate = one.rate if one.rate is not None else sum(stream.rate for stream in arrives)
            into[one.name] = rate
            operators.append(_operator(one, rate))
            streams += [
                PlannedStream(
                    origin=one.name,
                    target=stream.target,
                    rate=rate * one.selectivity if stream.rate is None else stream.rate,
                )
                for stream in asked.streams
                if stream.origin == one.name
            ]
        waiting = [one for one in waiting if one not in ready]
    return tuple(operators), tuple(streams)


def _operator(one: OperatorEntry, rate: float) -> PlannedOperator:
    return PlannedOperator(
        name=one.name,
        rate=rate,
        queue=one.queue(),
        demand=one.demand,
        cost=one.cost,
        code_bytes=one.code_bytes,
        state_bytes=one.state_bytes,
        max_replicas=one.max_replicas,
        allowed=None if one.hosts is None else tuple(one.hosts),
    )


def _network(there: NetworkFile) -> Network:
    hosts = tuple(_host(one) for one in there.hosts)
    names = [host.name for host in hosts]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"host '{name}' appears twice")
    index = {host.name: number for number, host in enumerate(hosts)}
    count = len(hosts)
    delay_s = np.full((count, count), np.inf)
    own = np.zeros((count, count))  # prices of their own that links on the way have
    np.fill_diagonal(delay_s, 0.0)
    for link in there.links:
        for end in (link.a, link.b):
            if end not in index:
                raise InputError(f"link {link.a}-{link.b}: unknown host '{end}'")
        if link.a == link.b:
            raise InputError(f"link {link.a}-{link.b}: a link joins two different hosts")
        ways = [(index[link.a], index[link.b])]
        ways += [(index[link.b], index[link.a])] if link.both_ways else []
        for way in ways:
            if np.isfinite(delay_s[way]):
                raise InputError(f"link {link.a}-{link.b} appears twice")
            delay_s[way] = link.delay_s
            own[way] = np.nan if link.price is None else link.price
    if there.routing == "shortest":
        for via in range(count):
            over_s = delay_s[:, via : via + 1] + delay_s[via : via + 1, :]
            prices = own[:, via : via + 1], own[via : via + 1, :]
            summed = np.where(np.isnan(prices[0] + prices[1]), np.fmax(*prices), prices[0] + prices[1])
            own = np.where(over_s < delay_s, summed, own)
            delay_s = np.minimum(delay_s, over_s)
    if not np.isfinite(delay_s).all():
        a, b = np.argwhere(~np.isfinite(delay_s))[0]
        raise InputError(f"no way from host '{hosts[a].name}' to '{hosts[b].name}'")
    price = np.where(np.isnan(own), there.link_price, own)
    np.fill_diagonal(price, 0.0)
    return Network(hosts=hosts, delay_s=delay_s, price=price)


def _host(one: HostEntry) -> Host:
    given: dict[str, Any] = {name: value for name, value in one.model_dump().items() if value is not None}
    return Host(**given)
