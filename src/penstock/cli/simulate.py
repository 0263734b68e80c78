"""`penstock simulate`: one policy, one trace, one infrastructure."""

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import options, policy_options, screen
from penstock.domain.errors import InputError
from penstock.files import check_can_write, write_whole

if TYPE_CHECKING:
    from penstock.control.spec import Manager
    from penstock.domain.trace import Trace
    from penstock.simulation.result import SimulationResult


def simulate(
    context: typer.Context,
    policy: policy_options.PolicyOption = "adaptive",
    settings: policy_options.SetOption = None,
    trace: options.TraceOption = None,
    infrastructure: options.InfrastructureOption = "A:3",
    application: options.ApplicationOption = None,
    application_policy: Annotated[
        str | None, typer.Option("--application-policy", help=options.APPLICATION_POLICY_HELP)
    ] = None,
    path_slo_ms: options.PathSloOption = None,
    pause_s: options.PauseOption = None,
    hosts: options.HostsOption = None,
    node_policy: options.NodePolicyOption = None,
    migrate_above: options.MigrateOption = None,
    max_replicas: options.MaxReplicasOption = 10,
    slo_ms: options.SloOption = 50.0,
    slots: options.SlotsOption = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed for everything random in the run.")] = 1,
    as_published: options.PublishedOption = False,
    preset: options.PresetOption = None,
    service_rate: options.ServiceRateOption = None,
    service_scv: options.ServiceScvOption = None,
    max_rate: options.MaxRateOption = None,
    levels: options.LevelsOption = None,
    weights: options.WeightsOption = "0.6,0.2,0.2",
    training: options.TrainingOption = None,
    rate_change: options.RateChangeOption = None,
    price_change: options.PriceChangeOption = None,
    speed_change: options.SpeedChangeOption = None,
    forecast: options.ForecastOption = None,
    update: options.UpdateOption = None,
    first_replica: options.FirstReplicaOption = None,
    history: Annotated[
        Path | None,
        typer.Option(
            "--history", help="Also write a CSV with every slot's rate, replicas, response time and cost."
        ),
    ] = None,
    json_output: options.JsonOption = False,
) -> None:
    """Run one policy over a trace in the simulator and print what it cost.

    Example: penstock simulate --policy ql-pds --trace taxi.txt --infrastructure A:3 --slots 400001

    A whole application: penstock simulate --application diamond --policy threshold-c
    --application-policy token-bucket --slots 10080
    """
    from penstock.policy.registry import Level

    (below,), above, nodes = policy_options.chosen(
        settings or (),
        policies=[policy],
        application_policies=[] if application_policy is None else [application_policy],
        node_policies=[] if node_policy is None else [node_policy],
    )
    if above and above[0].entry(Level.APPLICATION).traits.decides_itself:
        where = f"under '{above[0].name}', which decides for all operators"
        options.check_matters(context, where, ["policy"])
    if not below.entry(Level.OPERATOR).traits.plans_ahead:
        options.check_matters(context, f"under policy '{below.name}', which reads no forecasts", ["forecast"])
    if history is not None:
        check_can_write(history)
        if trace is not None and history.exists() and trace.exists() and history.samefile(trace):
            raise InputError(f"--history {history}: that is the trace; give another file")
    inputs = options.gather(
        trace=trace,
        slots=slots,
        training=training,
        preset=preset,
        service_rate=service_rate,
        service_scv=service_scv,
        max_rate=max_rate,
        levels=levels,
        infrastructure=infrastructure,
        max_replicas=max_replicas,
        slo_ms=slo_ms,
        weights=weights,
        as_published=as_published,
        rate_change=rate_change,
        price_change=price_change,
        speed_change=speed_change,
        forecast=forecast,
        update=update,
        first_replica=first_replica,
        application=application,
        managed=bool(above),
        path_slo_ms=path_slo_ms,
        pause_s=pause_s,
        hosts=hosts,
        node_policy=nodes[0] if nodes else None,
        migrate_above=migrate_above,
    )
    spec = inputs.simulation(below, above[0] if above else None, seed=seed)
    with screen.busy(f"simulating {spec.label} (the first run of a policy compiles it)"):
        from penstock.simulation.play import run

        result = run(
            spec, inputs.trace.rates, training=inputs.training.rates, with_history=history is not None
        )
    if history is not None:
        write_whole(history, _history_csv(result, inputs.trace))
    if json_output:
        screen.print_json(as_json(result, inputs.trace))
        return
    screen.print_table(
        ("", spec.label),
        [
            ("average cost", f"{result.avg_cost:.4f}"),
            ("violations", f"{result.violations_pct:.1f} %"),
            ("reconfigurations", f"{result.reconfigurations_pct:.1f} %"),
            ("resources (mean price)", f"{result.resource_cost:.2f}"),
            ("replicas (mean)", f"{result.mean_replicas:.2f}"),
            *([] if result.mean_watts is None else [("power (mean)", f"{result.mean_watts:.1f} W")]),
            *([] if result.downtime_pct is None else [("downtime", f"{result.downtime_pct:.2f} %")]),
            *([] if result.migrations is None else [("migrations", f"{result.migrations:,}")]),
            ("slots", f"{result.slots:,}"),
            ("speed", _speed(result.slots_per_s)),
        ],
    )


def _speed(slots_per_s: float) -> str:
    return f"{slots_per_s / 1e6:.1f} M slots/s" if slots_per_s >= 1e5 else f"{slots_per_s:,.0f} slots/s"


def as_json(result: "SimulationResult", trace: "Trace") -> dict[str, Any]:
    """The figures that scripts rely on."""
    spec = result.spec
    above: Manager | None = getattr(spec, "application_policy", None)
    return {
        "policy": spec.operator_policy.name if spec.operators_decide else None,
        "parameters": dict(spec.operator_policy.parameters) if spec.operators_decide else {},
        "trace": trace.name,
        "infrastructure": spec.infrastructure,
        "application": getattr(spec, "application", None),
        "application_policy": None if above is None else above.name,
        "application_parameters": {} if above is None else dict(above.parameters),
        "max_replicas": spec.max_replicas,
        "slo_ms": spec.slo_s * 1000,
        "seed": spec.seed,
        "as_published": spec.as_published,
        "avg_cost": result.avg_cost,
        "violations_pct": result.violations_pct,
        "reconfigurations_pct": result.reconfigurations_pct,
        "resource_cost": result.resource_cost,
        "mean_replicas": result.mean_replicas,
        "replicas_by_type": list(result.replicas_by_type),
        "mean_watts": result.mean_watts,
        "downtime_pct": result.downtime_pct,
        "migrations": result.migrations,
        "slots": result.slots,
        "slots_per_s": round(result.slots_per_s),
    }


def _history_csv(result: "SimulationResult", trace: "Trace") -> str:
    happened = result.history
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("slot", "rate", "replicas", "resources", "response_time_s", "cost"))
    if happened is not None:
        rows.writerows(
            zip(
                range(result.slots),
                trace.rates.tolist(),
                happened.replicas.astype(int).tolist(),
                happened.resources.tolist(),
                happened.response_time_s.tolist(),
                happened.cost.tolist(),
                strict=True,
            )
        )
    return text.getvalue()
