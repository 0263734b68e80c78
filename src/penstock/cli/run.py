"""`penstock run`: an application on Spark, under control."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import live_view, options, policy_options, screen
from penstock.domain.errors import InputError
from penstock.files import content_of, write_whole
from penstock.reports import live_summary

if TYPE_CHECKING:
    from penstock.apps.entry import AppEntry
    from penstock.control.spec import Manager
    from penstock.live.record import Summary
    from penstock.live.run import LiveRun

_SUMMARY = "summary.json"  # of a run that has ended
_USUAL, _USUAL_TUNED = "adaptive", "ql-pds-plus"  # policies of operators, where none is named


def run(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(metavar="APP", help="{applications}; or module:name of an App of your own."),
    ],
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            help=f"{policy_options.POLICY_HELP} If left out, {_USUAL}; under an application policy that "
            f"tunes, {_USUAL_TUNED}.",
        ),
    ] = None,
    settings: policy_options.SetOption = None,
    slo: Annotated[
        float | None, typer.Option("--slo", help="Response time from source to sink, in seconds.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", help="Stop after this many; if left out, when the load ends.")
    ] = None,
    until_done: Annotated[
        bool, typer.Option("--until-done", help="Stop when all input has been processed.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder of the run; an interrupted run resumes.")] = Path(
        "out/run"
    ),
    input_file: Annotated[
        Path | None,
        typer.Option(
            "--input",
            help="Recorded tuples to replay, one per line: trips of 17 fields (top-routes), or quotes of 4, "
            "timestamp,symbol,price,volume (algo-trader).",
        ),
    ] = None,
    acceleration: Annotated[
        float, typer.Option("--acceleration", help="Replay this many times faster than recorded.")
    ] = 60.0,
    amplification: Annotated[
        int, typer.Option("--amplification", help="Trips per recorded trip: itself and its surrogates.")
    ] = 1,
    load: Annotated[str, typer.Option("--load", help="Shape of a made-up load: {load_shapes}.")] = "step",
    low: Annotated[float, typer.Option("--low", help="Tuples/s while the load is low.")] = 40.0,
    high: Annotated[float, typer.Option("--high", help="Tuples/s while the load is high.")] = 160.0,
    repeat: Annotated[
        int, typer.Option("--repeat", min=1, help="Times that the shape of --load comes during the run.")
    ] = 1,
    rates: Annotated[
        Path | None, typer.Option("--rates", help="Follow a trace file instead: one rate per line and slot.")
    ] = None,
    slot: Annotated[float, typer.Option("--slot", help="Seconds per slot of --rates.")] = 1.0,
    forecast: options.ForecastOption = None,
    application_policy: Annotated[
        str,
        typer.Option(
            "--application-policy",
            help="Who manages the application: {application_policies}; or module:Class of your own. A policy "
            "that tunes lets the --policy work with naive shares of the objective at first, tunes in a "
            "process beside the run, and swaps the result in. A policy that needs a model measures for half "
            "a minute first.",
        ),
    ] = "grant-all",
    retune_every: Annotated[
        float,
        typer.Option(
            "--retune-every",
            help="Under an application policy that tunes: seconds after a tuning before checking if load "
            "or service times have moved by a fifth, and tuning again if so.",
        ),
    ] = 300.0,
    advise: Annotated[bool, typer.Option("--advise", help="Decide and explain, but change nothing.")] = False,
    replicas: Annotated[int, typer.Option("--replicas", help="Replicas every operator starts with.")] = 1,
    spares: Annotated[
        int,
        typer.Option(
            "--spares",
            min=0,
            help="Warm executors of every operator that wait to become replicas: a replica then works within "
            "two seconds. They count as replicas in the cost.",
        ),
    ] = 0,
    max_replicas: Annotated[
        int, typer.Option("--max-replicas", min=1, help="Most replicas an operator may have.")
    ] = 3,
    nodes: Annotated[
        str,
        typer.Option(
            "--nodes",
            help="Node types on offer, as NAME:SPEEDUP:PRICE (of a replica, per hour), separated by commas; "
            ":SLOTS limits how many replicas one can host, as in slow:1:1,fast:2:2.5:4, and @WATTS is what a "
            "replica draws, as in core:1:1@5.7. Replicas start on the first.",
        ),
    ] = "standard:1:1",
    max_nodes: Annotated[
        int | None, typer.Option("--max-nodes", min=1, help="Most replicas of all operators together.")
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", help="Highest price of all replicas together, per hour, as in --nodes."),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="URL",
            help="A cluster that runs already: spark://HOST:PORT, whose workers see the run folder under the "
            "same path and have Penstock installed; yarn and k8s://... are not tested. With several node "
            "types, a standalone master on this machine. An embedded cluster if left out.",
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf",
            metavar="KEY=VALUE",
            help="A Spark setting for the session, as for spark-submit; may be repeated. On the embedded "
            "cluster expressions in SQL are interpreted, unless spark.sql.codegen.wholeStage=true and "
            "spark.sql.codegen.factoryMode=FALLBACK are set.",
        ),
    ] = None,
    interval: Annotated[float, typer.Option("--interval", help="Seconds between two decisions.")] = 1.0,
    trigger: Annotated[
        float,
        typer.Option(
            "--trigger",
            help="Shortest time from one micro-batch to the next, in seconds: a short one answers sooner, "
            "a long one leaves the machine time for other work.",
        ),
    ] = 0.5,
    joined: Annotated[
        bool | None,
        typer.Option(
            "--joined/--apart",
            help="Operators one after the other share a query where they can, each on executors of its own: "
            "less work for the machine. Or every operator has a query, and a stream in files to the next: "
            "they work at the same time. If left out, as the application says.",
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            help="How replicas change: live (executors come and go, the query keeps running) or "
            "pause-and-resume (stop, repartition the state, start).",
        ),
    ] = "live",
    keep_gb: Annotated[
        float,
        typer.Option(
            "--keep-gb",
            help="Gigabytes of results to keep in the run folder, of every sink without a writer of its own: "
            "beyond that, the oldest go, and the run says how many.",
        ),
    ] = 10.0,
    force_scaling: Annotated[
        bool,
        typer.Option(
            "--force-scaling", help="Change replicas at every interval, whatever the policy: for tests."
        ),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed for everything random.")] = 1,
    json_output: options.JsonOption = False,
) -> None:
    """Run an application on an embedded Spark cluster, measured and scaled while data flows.

    Example: penstock run top-routes --input trips.csv --until-done --out my-run

    While it runs, `penstock order` (as in `penstock order pause my-run`) tells its controller what to do.
    """
    from penstock.apps.feeding.load import Load
    from penstock.apps.registry import load_application
    from penstock.control.forecasting import forecast_of
    from penstock.domain.objective import Objective
    from penstock.live.run import LiveRun, RunError
    from penstock.live.settings import LiveSettings, controller_for, node_kinds
    from penstock.reconfigure.method import Method
    from penstock.runtimes.spark.cluster import ClusterError

    if input_file is not None and not input_file.is_file():
        raise InputError(f"{input_file}: cannot read: no such file")
    _check_unfinished(out)
    methods = [method.value for method in Method]
    if protocol not in methods:
        raise InputError(f"--protocol '{protocol}': choose {' or '.join(methods)}")
    if ":" in name:
        policy_options.look_here()
    entry = load_application(name)
    joined = entry.joined if joined is None else joined
    app = entry.on_spark(
        objective=Objective(response_time_s=entry.objective_s if slo is None else slo),
        max_replicas=max_replicas,
        protocol=Method(protocol),
    )
    if entry.own:
        _check_own(context, name, until_done=until_done)
    (below,), (above,), _ = policy_options.chosen(
        settings or (),
        policies=[policy or _usual_policy(application_policy)],
        application_policies=[application_policy],
    )
    _check_matters(context, below, above, follows_rates=rates is not None)
    seconds = 60 * minutes if minutes is not None else 240.0
    kinds = node_kinds(nodes)
    controller = controller_for(
        app,
        policy=below,
        application_policy=above,
        kinds=kinds,
        replicas=replicas,
        interval_s=interval,
        max_cost=max_cost,
        max_nodes=max_nodes,
        seed=seed,
        advise=advise,
        joined=joined,
    )
    asked = LiveSettings(
        out=out,
        kinds=kinds,
        minutes=minutes,
        until_done=until_done or minutes is None,
        trigger_s=trigger,
        joined=joined,
        replicas=replicas,
        spares=spares,
        retune_s=retune_every,
        master=master,
        conf=_conf(conf or []),
        keep_gb=keep_gb,
        force_scaling=force_scaling,
        forecast=None if forecast is None else forecast_of(forecast),
    )
    what = Load(
        low=low,
        high=high,
        shape=load,
        seconds=seconds,
        times=repeat,
        rates=rates,
        slot_s=slot,
        input=input_file,
        acceleration=acceleration,
        amplification=amplification,
        seed=seed,
    )
    live = LiveRun(app, controller, asked, entry.feeder(what))

    def accepted() -> None:
        if controller.ignores_objective is not None:
            screen.complain(f"note: {controller.ignores_objective}")
        (out / _SUMMARY).unlink(missing_ok=True)  # of a run that was stopped: it goes on, and takes orders

    live.on_accepted = accepted
    try:
        live.check()
        with live.owner:
            _check_unfinished(out)  # it may have ended a moment ago
            summary = live_view.watched(live, stoppable=True)
            try:
                _leave_results(entry, live, summary, name, json_output=json_output)
            except (InputError, OSError) as problem:  # a full disk: what was asked for was right
                raise RunError(f"its results could not be written: {problem}") from problem
    except (ClusterError, RunError) as problem:
        screen.complain(problem)
        raise typer.Exit(1) from problem


def _check_unfinished(out: Path) -> None:
    if _is_finished(out):
        raise InputError(f"--out {out}: it holds a finished run; give another folder, or remove it")


def _is_finished(out: Path) -> bool:
    """Whether it holds a run that went on to its end; one that was stopped can go on."""
    from penstock.control.plain_data import parsed_json

    try:
        return bool(parsed_json(content_of(out / _SUMMARY))["finished"])
    except FileNotFoundError:
        return False
    except (OSError, ValueError, LookupError, TypeError):  # whatever it is, it is not ours to replace
        return True


def _leave_results(
    entry: "AppEntry", live: "LiveRun", summary: "Summary", name: str, *, json_output: bool
) -> None:
    """Results, report and summary in the run folder, and on the screen."""
    from penstock.live.fixed_replicas import would_have_done
    from penstock.reports.live_run import page_of

    out, spec = live.settings.out, live.controller
    results = out / "results"
    results.mkdir(parents=True, exist_ok=True)
    said = entry.results(live.app, live.work, results)
    fixed = would_have_done(
        spec.application,
        live.kept.latest,
        spec.node_types,
        live.objective_s,
        spec.together,
        is_all=live.kept.has_all,
    )
    verdict = live_summary.verdict(summary, live.objective_s, fixed)
    write_whole(out / "report.html", page_of(live, summary, name, fixed))
    told = {**summary.as_json(), "verdict": verdict, "fixed": {n: asdict(one) for n, one in fixed.items()}}
    write_whole(out / _SUMMARY, screen.json_text(told))
    if json_output:
        screen.print_json(told)
        return
    missed = live_summary.missed(summary)
    if missed:
        screen.out.print(verdict, soft_wrap=True)
    live_view.print_summary(name, summary, fixed)
    screen.out.print(f"{said}; report: {out / 'report.html'}", soft_wrap=True)
    if not missed:
        screen.out.print(verdict, soft_wrap=True)


def _check_own(context: typer.Context, name: str, *, until_done: bool) -> None:
    """An application of the user's brings all this with it."""
    brought = ["load", "low", "high", "rates", "slot", "input_file", "acceleration", "amplification"]
    options.check_matters(
        context, f"with '{name}', which says so itself", [*brought, "max_replicas", "protocol"]
    )
    if until_done:
        raise InputError(f"--until-done: the sources of '{name}' never end; give --minutes, or press Ctrl-C")


def _conf(given: list[str]) -> dict[str, str]:
    settings = dict[str, str]()
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or key in settings:
            raise InputError(f"--conf '{text}': give KEY=VALUE, and every key once")
        settings[key] = value
    return settings


def _check_matters(
    context: typer.Context, below: "Manager", above: "Manager", *, follows_rates: bool
) -> None:
    from penstock.policy.registry import Level

    if not below.entry(Level.OPERATOR).traits.plans_ahead:
        options.check_matters(context, f"under policy '{below.name}', which reads no forecasts", ["forecast"])
    traits = above.entry(Level.APPLICATION).traits
    if traits.decides_itself:
        options.check_matters(context, f"under '{above.name}', which decides for all operators", ["policy"])
    if not traits.tunes:
        options.check_matters(context, "without an application policy that tunes", ["retune_every"])
    if follows_rates:
        options.check_matters(context, "with --rates", ["load", "low", "high", "repeat"])
    else:
        options.check_matters(context, "without --rates", ["slot"])


def _usual_policy(application_policy: str) -> str:
    from penstock.policy.registry import Level

    tunes = policy_options.loaded(Level.APPLICATION, application_policy).traits.tunes
    return _USUAL_TUNED if tunes else _USUAL
