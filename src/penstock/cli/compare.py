"""`penstock compare`: several policies and seeds, a table with intervals, a page of plots."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import options, screen
from penstock.cli import policy_options as named
from penstock.cli.compare_on_spark import LIVE_APPLICATION, LIVE_POLICIES, MOST_ON_SPARK, on_spark
from penstock.domain.errors import InputError
from penstock.files import check_can_write, write_whole

if TYPE_CHECKING:
    from penstock.reports.comparison import PolicyResults
    from penstock.simulation.result import SimulationResult

SLO_MS, MOST_SIMULATED = 50.0, 10
NOBODY = "nobody"  # manages the application
DEFAULT_POLICIES = "adaptive,fixed,threshold-c,ds2,ql,ql-pds,ql-pds-plus,model-based,vi"

LIVE = ("minutes", "interval", "load", "low", "high")  # parameters of `compare` for runs on Spark
ANYWHERE = ("policies", "settings", "application", "max_replicas", "slo_ms", "out", "runtime", "json_output")


def compare(
    context: typer.Context,
    policies: Annotated[
        str | None,
        typer.Option(
            "--policies",
            "--policy",
            help=f"Names separated by commas; {DEFAULT_POLICIES} if left out, {LIVE_POLICIES} on Spark. "
            f"{named.POLICY_HELP}",
        ),
    ] = None,
    settings: named.SetOption = None,
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds", min=1, max=options.MOST_SEEDS, help="Seeds per policy whose behaviour is random."
        ),
    ] = 5,
    trace: options.TraceOption = None,
    infrastructure: options.InfrastructureOption = "A:3",
    application: options.ApplicationOption = None,
    application_policies: Annotated[
        str | None,
        typer.Option(
            "--application-policies",
            "--application-policy",
            help=f"Names separated by commas, nobody for no manager. {options.APPLICATION_POLICY_HELP}",
        ),
    ] = None,
    path_slo_ms: options.PathSloOption = None,
    pause_s: options.PauseOption = None,
    hosts: options.HostsOption = None,
    max_replicas: Annotated[
        int | None,
        typer.Option(
            "--max-replicas",
            min=1,
            help=f"Replicas an operator may run; {MOST_SIMULATED} if left out, {MOST_ON_SPARK} on Spark.",
        ),
    ] = None,
    slo_ms: Annotated[
        float | None,
        typer.Option(
            "--slo-ms",
            help=f"Response-time objective in milliseconds; {SLO_MS:g} if left out, the application's own on "
            "Spark.",
        ),
    ] = None,
    slots: options.SlotsOption = None,
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
    threads: options.ThreadsOption = None,
    out: Annotated[Path | None, typer.Option("--out", help="Also write a page of plots (HTML).")] = None,
    runtime: Annotated[
        str,
        typer.Option(
            "--runtime",
            help=f"sim; or spark: run an application live ({LIVE_APPLICATION} if --application is left out), "
            "one contender after another, each for --minutes under the same load. --policies may then also "
            "name dynamic-allocation (Spark's own), static-mean and static-peak (the replicas that the mean "
            "or the peak of the load needs), and --out is a folder.",
        ),
    ] = "sim",
    minutes: Annotated[float, typer.Option("--minutes", help="Length of each run on Spark.")] = 4.0,
    interval: Annotated[
        float, typer.Option("--interval", help="Seconds between two decisions on Spark.")
    ] = 1.0,
    load: Annotated[str, typer.Option("--load", help="Shape of the load on Spark: {load_shapes}.")] = "ramp",
    low: Annotated[float, typer.Option("--low", help="Tuples/s while the load is low, on Spark.")] = 25.0,
    high: Annotated[float, typer.Option("--high", help="Tuples/s while the load is high, on Spark.")] = 200.0,
    json_output: options.JsonOption = False,
) -> None:
    """Run several policies over the same trace and show them side by side.

    Example: penstock compare --policies threshold-c,ql-pds,vi --seeds 10 --out comparison.html

    A whole application: penstock compare --application diamond --policies threshold-c
    --application-policies grant-all,token-bucket,drs-c,lohrmann-c --slots 10080

    Live: penstock compare --runtime spark --minutes 4 --out side-by-side
    """
    if runtime not in ("sim", "spark"):
        raise InputError(f"--runtime '{runtime}': choose sim or spark")
    simulated = [one.name for one in context.command.params if one.name not in (*LIVE, *ANYWHERE)]
    ignored = simulated if runtime == "spark" else LIVE
    options.check_matters(context, f"with --runtime {runtime}", ignored)
    if runtime == "spark":
        on_spark(
            policies=policies,
            settings=settings or (),
            application=application,
            minutes=minutes,
            interval_s=interval,
            shape=load,
            low=low,
            high=high,
            max_replicas=MOST_ON_SPARK if max_replicas is None else max_replicas,
            slo_s=None if slo_ms is None else slo_ms / 1000,
            out=out,
            json_output=json_output,
        )
        return
    max_replicas = MOST_SIMULATED if max_replicas is None else max_replicas
    slo_ms = SLO_MS if slo_ms is None else slo_ms
    above = named.listed("--application-policies", application_policies) if application_policies else []
    managers, managing, _ = named.chosen(
        settings or (),
        policies=named.listed("--policies", policies or DEFAULT_POLICIES),
        application_policies=[name for name in above if name != NOBODY],
        also_alone=NOBODY in above,
    )
    if out is not None:
        check_can_write(out)
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
        managed=bool(managing),
        path_slo_ms=path_slo_ms,
        pause_s=pause_s,
        hosts=hosts,
    )
    by_name = {manager.name: manager for manager in managing}
    specs = [
        inputs.simulation(policy, by_name.get(name)) for name in above or [NOBODY] for policy in managers
    ]
    # A manager that decides for the operators has no use for their policies.
    specs = list({spec.label: spec for spec in reversed(specs)}.values())[::-1]
    jobs = [
        (replace(spec, seed=seed), inputs.trace.rates, inputs.training.rates)
        for spec in specs
        for seed in range(1, (seeds if spec.depends_on_seed else 1) + 1)
    ]
    from penstock.reports.comparison import HEADER, comparison_page
    from penstock.simulation.play import run_all

    with screen.progress("simulating", len(jobs)) as bar:
        outcomes = run_all(
            jobs,
            threads=options.default_threads(threads),
            with_history=True,
            done=lambda outcome: bar.advance(),
        )
    results = sorted(
        (_results(name, outcomes) for name in dict.fromkeys(spec.label for spec in specs)),
        key=lambda result: sum(result.avg_cost) / len(result.avg_cost),
    )
    setting = (
        f"{f'Application {application}. ' if application else ''}"
        f"Trace {inputs.trace.name}, {inputs.trace.rates.size:,} slots; infrastructure {infrastructure}, "
        f"up to {max_replicas} replicas; response time at most {slo_ms:g} ms"
        f"{'; as published' if as_published else ''}"
        f"{f'; a reconfiguration pauses for {10.0 if pause_s is None else pause_s:g} s' if managing else ''}"
        f"{'' if hosts is None else f'; hosts {hosts} (nodes of every type, slots, ms between them)'}."
    )
    if out is not None:
        page = comparison_page(results, inputs.trace.rates, title="Policies side by side", setting=setting)
        write_whole(out, page)
    if json_output:
        screen.print_json({"setting": setting, "policies": [result.as_json() for result in results]})
        return
    screen.print_table(HEADER, [result.cells() for result in results], title=setting)
    if out is not None:
        screen.out.print(f"plots: {out}")


def _results(policy: str, outcomes: "Sequence[SimulationResult]") -> "PolicyResults":
    from penstock.reports.comparison import PolicyResults

    mine = [outcome for outcome in outcomes if outcome.spec.label == policy]
    first = mine[0].history
    if first is None:
        raise ValueError("a comparison needs the history of its runs")
    return PolicyResults(
        policy=policy,
        avg_cost=tuple(o.avg_cost for o in mine),
        violations_pct=tuple(o.violations_pct for o in mine),
        reconfigurations_pct=tuple(o.reconfigurations_pct for o in mine),
        resource_cost=tuple(o.resource_cost for o in mine),
        mean_replicas=tuple(o.mean_replicas for o in mine),
        cost=first.cost,
        replicas=first.replicas,
    )
