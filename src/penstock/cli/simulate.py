"""`penstock simulate`: one policy, one trace, one infrastructure."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli import options, screen
from penstock.domain.errors import InputError
from penstock.domain.trace import Trace
from penstock.files import check_can_write, write_whole
from penstock.simulation.application_managers import check_application_policy_name
from penstock.simulation.catalogue import check_policy_name
from penstock.simulation.hosts import hosts_of
from penstock.simulation.managed import label, operators_decide, run_any
from penstock.simulation.play import SimulationResult


def simulate(
    policy: Annotated[str, typer.Option("--policy", help=options.POLICY_HELP)] = "ql-pds-plus",
    trace: options.TraceOption = None,
    infrastructure: options.InfrastructureOption = "A:3",
    application: options.ApplicationOption = None,
    application_policy: Annotated[
        str | None, typer.Option("--application-policy", help=options.APPLICATION_POLICY_HELP)
    ] = None,
    path_slo_ms: options.PathSloOption = None,
    pause_s: options.PauseOption = 10.0,
    hosts: options.HostsOption = None,
    migrate_above: options.MigrateOption = None,
    max_replicas: options.MaxReplicasOption = 10,
    slo_ms: options.SloOption = 50.0,
    slots: options.SlotsOption = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything random in the run.")] = 1,
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
    update: options.UpdateOption = None,
    first_replica: options.FirstReplicaOption = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Utilisation at which threshold policies scale out.")
    ] = None,
    beta: Annotated[
        float, typer.Option("--beta", help="Fraction of the threshold below which they scale in.")
    ] = 0.75,
    replicas: Annotated[
        int | None,
        typer.Option("--replicas", help="Replicas of policy fixed; enough for the peak if left out."),
    ] = None,
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
    check_policy_name(policy)
    if application_policy is not None:
        check_application_policy_name(application_policy)
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
        update=update,
        first_replica=first_replica,
        application=application,
        path_slo_ms=path_slo_ms,
        pause_s=pause_s,
    )
    spec = replace(
        options.for_policy(inputs, policy, seed=seed),
        threshold=threshold,
        beta=beta,
        replicas=replicas,
        application_policy=application_policy,
        hosts=None if hosts is None else hosts_of(hosts),
        migrate_above=migrate_above,
    )
    with screen.err.status(f"simulating {label(spec)} (the first run of a policy compiles it)"):
        outcome = run_any(
            spec, inputs.trace.rates, training=inputs.training.rates, with_history=history is not None
        )
    if history is not None:
        write_whole(history, _history_csv(outcome, inputs.trace))
    if json_output:
        screen.print_json(as_json(outcome, inputs.trace))
        return
    screen.print_table(
        ("", label(spec)),
        [
            ("average cost", f"{outcome.avg_cost:.4f}"),
            ("violations", f"{outcome.violations_pct:.1f} %"),
            ("reconfigurations", f"{outcome.reconfigurations_pct:.1f} %"),
            ("resources (mean price)", f"{outcome.resource_cost:.2f}"),
            ("replicas (mean)", f"{outcome.mean_replicas:.2f}"),
            *([] if outcome.downtime_pct is None else [("downtime", f"{outcome.downtime_pct:.2f} %")]),
            *([] if outcome.migrations is None else [("migrations", f"{outcome.migrations:,}")]),
            ("slots", f"{outcome.slots:,}"),
            ("speed", _speed(outcome.slots_per_s)),
        ],
    )


def _speed(slots_per_s: float) -> str:
    return f"{slots_per_s / 1e6:.1f} M slots/s" if slots_per_s >= 1e5 else f"{slots_per_s:,.0f} slots/s"


def as_json(outcome: SimulationResult, trace: Trace) -> dict[str, Any]:
    """What others script against."""
    spec = outcome.spec
    return {
        "policy": spec.policy if operators_decide(spec) else None,
        "trace": trace.name,
        "infrastructure": spec.infrastructure,
        "application": spec.application,
        "application_policy": spec.application_policy,
        "max_replicas": spec.max_replicas,
        "slo_ms": spec.slo_s * 1000,
        "seed": spec.seed,
        "as_published": spec.as_published,
        "avg_cost": outcome.avg_cost,
        "violations_pct": outcome.violations_pct,
        "reconfigurations_pct": outcome.reconfigurations_pct,
        "resource_cost": outcome.resource_cost,
        "mean_replicas": outcome.mean_replicas,
        "replicas_by_type": list(outcome.replicas_by_type),
        "downtime_pct": outcome.downtime_pct,
        "migrations": outcome.migrations,
        "slots": outcome.slots,
        "slots_per_s": round(outcome.slots_per_s),
    }


def _history_csv(outcome: SimulationResult, trace: Trace) -> str:
    happened = outcome.history
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("slot", "rate", "replicas", "resources", "response_time_s", "cost"))
    if happened is not None:
        rows.writerows(
            zip(
                range(outcome.slots),
                trace.rates.tolist(),
                happened.replicas.astype(int).tolist(),
                happened.resources.tolist(),
                happened.response_time_s.tolist(),
                happened.cost.tolist(),
                strict=True,
            )
        )
    return text.getvalue()
