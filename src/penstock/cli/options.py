"""Options several commands share, and how they become a specification."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from penstock.apps.named import APPLICATIONS, application_named
from penstock.data.synthetic import DAY_AND_WEEK, day_and_week
from penstock.data.traces import read_trace
from penstock.domain.application import Path as ApplicationPath
from penstock.domain.errors import InputError
from penstock.domain.objective import Weights
from penstock.domain.trace import SLOTS_PER_DAY, Trace
from penstock.simulation.application_managers import APPLICATION_POLICIES
from penstock.simulation.catalogue import POLICIES, TRAINING_SLOTS
from penstock.simulation.presets import (
    SPEEDUPS,
    WORKLOADS,
    FirstReplica,
    WorkloadPreset,
    workload_named,
    workload_of_trace,
)
from penstock.simulation.spec import Shift, Spec

SYNTHETIC_SLOTS = 28 * SLOTS_PER_DAY

POLICY_HELP = f"One of: {', '.join(POLICIES)}."

TraceOption = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        help="Arrival rates, one number (tuples/s) per line; a synthetic day-and-week trace if left out.",
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master", help="Spark cluster, as in spark://host:7077; the cores of this machine if left out."
    ),
]
InfrastructureOption = Annotated[
    str,
    typer.Option(
        "--infrastructure",
        help=f"Node types on offer: a family ({', '.join(SPEEDUPS)}, linear) and how many of it.",
    ),
]
MaxReplicasOption = Annotated[
    int, typer.Option("--max-replicas", help="Replicas the operator may run at most.")
]
SloOption = Annotated[float, typer.Option("--slo-ms", help="Response-time objective in milliseconds.")]
SlotsOption = Annotated[
    int | None, typer.Option("--slots", help="Simulate only the first N slots of the trace.")
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help=f"Workload settings ({', '.join(WORKLOADS)}); by default the one the trace's name begins with.",
    ),
]
ServiceRateOption = Annotated[
    float | None, typer.Option("--service-rate", help="Tuples/s one replica on speedup 1 can process.")
]
ServiceScvOption = Annotated[
    float | None, typer.Option("--service-scv", help="Variance of the service time over its mean squared.")
]
MaxRateOption = Annotated[
    float | None, typer.Option("--max-rate", help="Rate at the top of the highest level.")
]
LevelsOption = Annotated[int | None, typer.Option("--levels", help="Rate levels the learners tell apart.")]
WeightsOption = Annotated[
    str,
    typer.Option("--weights", help="Weights of violations, resources and reconfigurations; they sum to 1."),
]
TrainingOption = Annotated[
    Path | None,
    typer.Option(
        "--training",
        help=f"Trace that policy vi plans with; the last {TRAINING_SLOTS} slots of --trace if left out.",
    ),
]
PublishedOption = Annotated[
    bool,
    typer.Option(
        "--as-published",
        help="The behaviour of the published simulator behind the paper's tables, not the paper's equations.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, help="Simulations at once; all cores if left out. Results do not depend on it."
    ),
]
RateChangeOption = Annotated[
    str | None,
    typer.Option(
        "--rate-change",
        metavar="FACTOR@WHEN",
        help="Multiply the rate from a slot (200000) or fraction of the run (0.5) on.",
    ),
]
PriceChangeOption = Annotated[
    str | None,
    typer.Option(
        "--price-change", metavar="FACTOR@WHEN", help="Multiply the price of all node types but the last."
    ),
]
SpeedChangeOption = Annotated[
    str | None,
    typer.Option(
        "--speed-change", metavar="FACTOR@WHEN", help="Multiply the speed of all node types but the last."
    ),
]
UpdateOption = Annotated[
    str | None,
    typer.Option(
        "--update", help="How learners update: equation or published; --as-published implies the latter."
    ),
]
FirstReplicaOption = Annotated[
    FirstReplica | None,
    typer.Option("--first-replica", help="Node type of the replica the operator starts with."),
]


ApplicationOption = Annotated[
    str | None,
    typer.Option(
        "--application",
        help=f"Simulate a graph of operators ({', '.join(APPLICATIONS)}) instead of a single one; "
        "--slo-ms then holds from source to sink. top-routes is made for --slo-ms 250.",
    ),
]
APPLICATION_POLICY_HELP = (
    f"Who manages the application: {', '.join(APPLICATION_POLICIES)}. grant-all and token-bucket answer what "
    "each operator's --policy asks for; tuned sets the --policy's bounds and weights, from simulations of "
    "--training; the others decide for all operators. Nobody if left out, and changes then take no time."
)
PathSloOption = Annotated[
    list[str] | None,
    typer.Option(
        "--path-slo-ms",
        metavar="A-B-C=MS",
        help="A response-time objective for one path of the application, named by its operators; repeatable.",
    ),
]
PauseOption = Annotated[
    float,
    typer.Option(
        "--pause-s",
        help="Under an application policy, how long a reconfiguration stops the application; what arrives "
        "meanwhile waits at the source.",
    ),
]
HostsOption = Annotated[
    str | None,
    typer.Option(
        "--hosts",
        metavar="NODES:SLOTS:MS",
        help="Under an application policy: nodes of every type, replicas each can host, and how far apart "
        "they are on average, as in 4:8:5. New replicas prefer near nodes, by delays estimated from round "
        "trips. Without it there is always room, and no distance.",
    ),
]
MigrateOption = Annotated[
    float | None,
    typer.Option(
        "--migrate-above",
        help="With --hosts: the utilisation of a node above which it sends replicas to others.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What to simulate over, and the settings every policy shares."""

    trace: Trace
    training: Trace
    base: Spec  # of policy `fixed`; replace the name


def default_threads(threads: int | None) -> int:
    return threads or os.cpu_count() or 1


def gather(
    *,
    trace: Path | None,
    slots: int | None,
    training: Path | None,
    preset: str | None,
    service_rate: float | None,
    service_scv: float | None,
    max_rate: float | None,
    levels: int | None,
    infrastructure: str,
    max_replicas: int,
    slo_ms: float,
    weights: str,
    as_published: bool,
    rate_change: str | None = None,
    price_change: str | None = None,
    speed_change: str | None = None,
    update: str | None = None,
    first_replica: FirstReplica | None = None,
    application: str | None = None,
    path_slo_ms: list[str] | None = None,
    pause_s: float = 10.0,
) -> Inputs:
    """Read the files and settle the settings; every mistake is named before anything runs."""
    if slots is not None and slots < 1:
        raise InputError(f"--slots {slots}: simulate at least one slot")
    if update not in (None, "equation", "published"):
        raise InputError(f"--update '{update}': choose equation or published")
    if application is not None:
        application_named(application, max_replicas)
        if service_rate is not None or service_scv is not None:
            raise InputError(
                f"--application {application}: its operators have service times of their own; "
                "leave out --service-rate and --service-scv"
            )
    whole = read_trace(trace) if trace else day_and_week(slots=slots or SYNTHETIC_SLOTS, seed=1)
    if slots is not None and slots > whole.rates.size:
        raise InputError(f"--slots {slots}: trace '{whole.name}' has {whole.rates.size}")
    shown = whole.first(slots) if slots else whole
    change = _change("--rate-change", rate_change, shown.rates.size)
    any_rate = 1.0  # the graph says how fast its operators are
    workload = _workload(whole, preset, service_rate if application is None else any_rate, max_rate)
    spec = Spec(
        policy="fixed",
        infrastructure=infrastructure,
        max_replicas=max_replicas,
        slo_s=slo_ms / 1000,
        weights=_weights(weights),
        service_rate=workload.service_rate if service_rate is None else service_rate,
        service_scv=workload.service_scv if service_scv is None else service_scv,
        levels=workload.levels if levels is None else levels,
        max_rate=workload.max_rate if max_rate is None else max_rate,
        as_published=as_published,
        published_updates=None if update is None else update == "published",
        first_replica=first_replica,
        application=application,
        path_slo_s=_path_limits(path_slo_ms or ()),
        pause_s=pause_s,
        price_change=_change("--price-change", price_change, shown.rates.size),
        speed_change=_change("--speed-change", speed_change, shown.rates.size),
    )
    return Inputs(
        trace=shown.scaled_from(change.slot, change.factor) if change else shown,
        training=read_trace(training) if training else whole.last(TRAINING_SLOTS),
        base=spec,
    )


def for_policy(inputs: Inputs, policy: str, *, seed: int = 1) -> Spec:
    return replace(inputs.base, policy=policy, seed=seed)


def _workload(
    trace: Trace, preset: str | None, service_rate: float | None, max_rate: float | None
) -> WorkloadPreset:
    if preset is not None:
        return workload_named(preset)
    named = workload_of_trace("taxi" if trace.name == DAY_AND_WEEK else trace.name)
    if named is not None:
        return named
    if service_rate is None:
        raise InputError(
            f"trace '{trace.name}': no preset of that name; give --service-rate (tuples/s one replica "
            f"can process) or --preset {'|'.join(WORKLOADS)}"
        )
    return WorkloadPreset(
        service_rate=service_rate,
        max_rate=max(float(trace.rates.max()), 1.0) if max_rate is None else max_rate,
    )


def _weights(text: str) -> Weights:
    parts = text.split(",")
    try:
        performance, resources, reconfiguration = (float(part) for part in parts)
    except ValueError:
        raise InputError(f"--weights '{text}': give three numbers, as in 0.6,0.2,0.2") from None
    return Weights(performance=performance, resources=resources, reconfiguration=reconfiguration)


def _path_limits(texts: Sequence[str]) -> tuple[tuple[ApplicationPath, float], ...]:
    limits = tuple(_path_limit(text) for text in texts)
    for path, times in Counter(path for path, _ in limits).items():
        if times > 1:
            raise InputError(f"--path-slo-ms: path {'-'.join(path)} has {times} limits; give one")
    return limits


def _path_limit(text: str) -> tuple[ApplicationPath, float]:
    path, _, limit = text.rpartition("=")
    try:
        return tuple(path.split("-")), float(limit) / 1000
    except ValueError:
        raise InputError(
            f"--path-slo-ms '{text}': give a path and milliseconds, as in split-slow-join=40"
        ) from None


def _change(option: str, text: str | None, slots: int) -> Shift | None:
    if text is None:
        return None
    factor, at, when = text.partition("@")
    try:
        moment = float(when)
        if moment < 0:
            raise InputError("slots count from 0")
        change = Shift(slot=int(moment * slots if moment < 1 else moment), factor=float(factor))
    except InputError as problem:
        raise InputError(f"{option} '{text}': {problem}") from None
    except (ValueError, OverflowError):
        raise InputError(f"{option} '{text}': give FACTOR@SLOT or FACTOR@FRACTION, as in 2@0.5") from None
    if not at or change.slot >= slots:
        raise InputError(f"{option} '{text}': the run has {slots} slots")
    return change
