"""Options several commands share, and how they become what is simulated."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.domain.errors import InputError
from penstock.simulation.presets import FirstReplica

if TYPE_CHECKING:
    from penstock.control.spec import Manager
    from penstock.domain.application import Path as ApplicationPath
    from penstock.domain.objective import Weights
    from penstock.domain.trace import Trace
    from penstock.simulation.presets import WorkloadPreset
    from penstock.simulation.spec import Shift, Simulation

SYNTHETIC_SLOTS = 28 * 1440
MOST_SEEDS = 10_000  # of a policy: every one is a simulation that is listed before any of them begins

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
    typer.Option("--infrastructure", help="Node types: a family ({families}) and how many, as in A:3."),
]
MaxReplicasOption = Annotated[int, typer.Option("--max-replicas", help="Most replicas an operator may run.")]
SloOption = Annotated[float, typer.Option("--slo-ms", help="Response-time objective in milliseconds.")]
SlotsOption = Annotated[
    int | None, typer.Option("--slots", help="Simulate only the first N slots of the trace.")
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="Workload settings ({workloads}); chosen by the trace's name if left out.",
    ),
]
ServiceRateOption = Annotated[
    float | None, typer.Option("--service-rate", help="Tuples/s a replica processes at speedup 1.")
]
ServiceScvOption = Annotated[
    float | None, typer.Option("--service-scv", help="Squared coefficient of variation of service times.")
]
MaxRateOption = Annotated[
    float | None, typer.Option("--max-rate", help="Rate at the top of the highest level.")
]
LevelsOption = Annotated[int | None, typer.Option("--levels", help="Rate levels that learners distinguish.")]
WeightsOption = Annotated[
    str,
    typer.Option("--weights", help="Weights of violations, resources and reconfigurations, summing to 1."),
]
ForecastOption = Annotated[
    str | None,
    typer.Option(
        "--forecast",
        help="What policies that plan ahead (mpc) see of the load to come: holt-winters, with a season of so "
        "many seconds as in holt-winters:86400, last, none or, in a simulation, oracle. If left out, "
        "holt-winters without a season.",
    ),
]
TrainingOption = Annotated[
    Path | None,
    typer.Option(
        "--training",
        help="Trace from which planners learn transitions; the last 44,000 slots of --trace if left out.",
    ),
]
PublishedOption = Annotated[
    bool,
    typer.Option(
        "--as-published",
        help="Behave like the published simulator behind the paper's tables, not like its equations.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
ThreadsOption = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, help="Simulations to run at once; one per core if left out. Results are the same."
    ),
]
RateChangeOption = Annotated[
    str | None,
    typer.Option(
        "--rate-change",
        metavar="FACTOR@WHEN",
        help="Multiply the rate, starting at a slot (200000) or a fraction of the run (0.5).",
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
        help="Simulate a graph of operators ({applications}) instead of a single one; --slo-ms then applies "
        "from source to sink ({objectives}).",
    ),
]
APPLICATION_POLICY_HELP = (
    "Who manages the application: {application_policies}; or module:Class of your own. If left out, nobody "
    "does, and changes take no time."
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
    float | None,
    typer.Option(
        "--pause-s",
        help="Under an application policy: seconds for which a reconfiguration stops the application (10 if "
        "left out); what arrives meanwhile waits at the source.",
    ),
]
HostsOption = Annotated[
    str | None,
    typer.Option(
        "--hosts",
        metavar="NODES:SLOTS:MS",
        help="Under an application policy: nodes of every type, replicas each can host, and their mean "
        "distance in ms, as in 4:8:5. New replicas prefer near nodes, by delays estimated from round "
        "trips. Without it there is always room and no delay.",
    ),
]
NodePolicyOption = Annotated[
    str | None,
    typer.Option(
        "--node-policy",
        help="With --hosts: who decides for a node, and may send its replicas to others: {node_policies}; or "
        "module:Class of your own. Nobody if left out: replicas stay where they are.",
    ),
]
MigrateOption = Annotated[
    float | None,
    typer.Option(
        "--migrate-above",
        help="With --hosts: the utilisation above which a node sends replicas to others. Short for "
        "--node-policy sender-initiated --set target_utilisation=...",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What to simulate over, and the settings every policy shares."""

    trace: "Trace"
    training: "Trace"
    common: dict[str, Any]  # fields that every simulation has
    of_operator: dict[str, Any]  # of a single operator's simulation
    application: str | None
    path_slo_s: "tuple[tuple[ApplicationPath, float], ...]"
    under_manager: dict[str, Any]  # of an application under its Application Manager

    def simulation(
        self, policy: "Manager", application_policy: "Manager | None" = None, *, seed: int = 1
    ) -> "Simulation":
        """One of the three things that can be simulated; what does not apply to it is an error."""
        from penstock.simulation.spec import ManagedApplication, OneOperator, OperatorGraph

        common = {**self.common, "operator_policy": policy, "seed": seed}
        if self.application is None:
            return OneOperator(**common, **self.of_operator)
        common |= {"application": self.application, "path_slo_s": self.path_slo_s}
        if application_policy is None:
            return OperatorGraph(**common)
        return ManagedApplication(
            **common,
            **self.under_manager,
            application_policy=application_policy,
        )


def check_matters(context: typer.Context, where: str, ignored: Sequence[str]) -> None:
    """An option that was given and has no effect here is an error: nobody would notice otherwise."""
    names = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    for name in ignored:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise InputError(f"{names[name]}: has no effect {where}; leave it out")


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
    managed: bool = False,
    path_slo_ms: list[str] | None = None,
    pause_s: float | None = None,
    hosts: str | None = None,
    node_policy: "Manager | None" = None,
    migrate_above: float | None = None,
    forecast: str | None = None,
) -> Inputs:
    """Read the files and work out the settings; every mistake is reported before anything runs."""
    from penstock.control.forecasting import forecast_of
    from penstock.data.synthetic import day_and_week
    from penstock.data.traces import read_trace
    from penstock.simulation.truth import TRAINING_SLOTS

    if slots is not None and slots < 1:
        raise InputError(f"--slots {slots}: simulate at least one slot")
    if update not in (None, "equation", "published"):
        raise InputError(f"--update '{update}': choose equation or published")
    _check_applicable(
        application,
        managed=managed,
        of_operator={
            "--service-rate": service_rate,
            "--service-scv": service_scv,
            "--price-change": price_change,
            "--speed-change": speed_change,
        },
        of_application={"--path-slo-ms": path_slo_ms},
        under_manager={
            "--pause-s": pause_s,
            "--hosts": hosts,
            "--node-policy": node_policy,
            "--migrate-above": migrate_above,
        },
    )
    whole = read_trace(trace) if trace else day_and_week(slots=slots or SYNTHETIC_SLOTS, seed=1)
    if slots is not None and slots > whole.rates.size:
        raise InputError(f"--slots {slots}: trace '{whole.name}' has {whole.rates.size}")
    shown = whole.first(slots) if slots else whole
    change = _shift("--rate-change", rate_change, shown.rates.size)
    any_rate = 1.0  # the graph says how fast its operators are
    workload = _workload(whole, preset, service_rate if application is None else any_rate, max_rate)
    return Inputs(
        trace=shown.scaled_from(change.slot, change.factor) if change else shown,
        training=read_trace(training) if training else whole.last(TRAINING_SLOTS),
        common={
            "infrastructure": infrastructure,
            "max_replicas": max_replicas,
            "slo_s": slo_ms / 1000,
            "weights": _weights(weights),
            "levels": workload.levels if levels is None else levels,
            "max_rate": workload.max_rate if max_rate is None else max_rate,
            "as_published": as_published,
            "published_updates": None if update is None else update == "published",
            "first_replica": first_replica,
            "forecast": None if forecast is None else forecast_of(forecast),
        },
        of_operator={
            "service_rate": workload.service_rate if service_rate is None else service_rate,
            "service_scv": workload.service_scv if service_scv is None else service_scv,
            "price_shift": _shift("--price-change", price_change, shown.rates.size),
            "speed_shift": _shift("--speed-change", speed_change, shown.rates.size),
        },
        application=application,
        path_slo_s=_path_limits(path_slo_ms or ()),
        under_manager=_under_manager(pause_s, hosts, _node_policy(node_policy, migrate_above)),
    )


def _check_applicable(
    application: str | None,
    *,
    managed: bool,
    of_operator: dict[str, object],
    of_application: dict[str, object],
    under_manager: dict[str, object],
) -> None:
    from penstock.apps.registry import load_application
    from penstock.cli.policy_options import look_here

    def given(options: dict[str, object]) -> str | None:
        return next((name for name, value in options.items() if value is not None and value != []), None)

    if application is None:
        if managed:
            raise InputError("an application policy needs an application; give --application")
        wrong = given(of_application) or given(under_manager)
        if wrong:
            raise InputError(f"{wrong}: there is no application; give --application")
        return
    if ":" in application:
        look_here()
    load_application(application)
    wrong = given(of_operator)
    if wrong in ("--service-rate", "--service-scv"):
        raise InputError(
            f"{wrong}: the operators of application '{application}' have their own service times; leave "
            "it out"
        )
    if wrong:
        raise InputError(f"{wrong}: application '{application}': it applies to single operators only")
    wrong = None if managed else given(under_manager)
    if wrong:
        raise InputError(f"{wrong}: nobody manages the application; give --application-policy")


def _node_policy(named: "Manager | None", migrate_above: float | None) -> "Manager | None":
    from penstock.control.spec import Manager

    if migrate_above is None:
        return named
    if named is not None:
        raise InputError("--migrate-above: --node-policy is given, too; choose one, and --set its parameters")
    return Manager("sender-initiated", {"target_utilisation": migrate_above})


def _under_manager(pause_s: float | None, hosts: str | None, node_policy: "Manager | None") -> dict[str, Any]:
    from penstock.simulation.hosts import hosts_of

    return {
        "pause_s": 10.0 if pause_s is None else pause_s,
        "hosts": None if hosts is None else hosts_of(hosts),
        "node_policy": node_policy,
    }


def _workload(
    trace: "Trace", preset: str | None, service_rate: float | None, max_rate: float | None
) -> "WorkloadPreset":
    from penstock.data.synthetic import DAY_AND_WEEK
    from penstock.simulation.presets import WORKLOADS, WorkloadPreset, workload_named, workload_of_trace

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


def _weights(text: str) -> "Weights":
    from penstock.domain.objective import Weights

    parts = text.split(",")
    try:
        performance, resources, reconfiguration = (float(part) for part in parts)
    except ValueError:
        raise InputError(f"--weights '{text}': give three numbers, as in 0.6,0.2,0.2") from None
    return Weights(performance=performance, resources=resources, reconfiguration=reconfiguration)


def _path_limits(texts: Sequence[str]) -> "tuple[tuple[ApplicationPath, float], ...]":
    limits = tuple(_path_limit(text) for text in texts)
    for path, times in Counter(path for path, _ in limits).items():
        if times > 1:
            raise InputError(f"--path-slo-ms: path {'-'.join(path)} has {times} limits; give one")
    return limits


def _path_limit(text: str) -> "tuple[ApplicationPath, float]":
    path, _, limit = text.rpartition("=")
    try:
        return tuple(path.split("-")), float(limit) / 1000
    except ValueError:
        raise InputError(
            f"--path-slo-ms '{text}': give a path and milliseconds, as in split-slow-join=40"
        ) from None


def _shift(option: str, text: str | None, slots: int) -> "Shift | None":
    from penstock.simulation.spec import Shift

    if text is None:
        return None
    factor, at, when = text.partition("@")
    try:
        moment = float(when)
        if moment < 0:
            raise InputError("slots count from 0")
        shift = Shift(slot=int(moment * slots if moment < 1 else moment), factor=float(factor))
    except InputError as problem:
        raise InputError(f"{option} '{text}': {problem}") from None
    except (ValueError, OverflowError):
        raise InputError(f"{option} '{text}': give FACTOR@SLOT or FACTOR@FRACTION, as in 2@0.5") from None
    if not at or shift.slot >= slots:
        raise InputError(f"{option} '{text}': the run has {slots} slots")
    return shift
