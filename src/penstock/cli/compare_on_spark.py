"""`penstock compare --runtime spark`: the same load live, one policy after another."""

from collections.abc import Sequence
from pathlib import Path

import typer

from penstock.cli import policy_options as named
from penstock.cli import screen

MOST_ON_SPARK = 3  # replicas of an operator that a small machine can run
LIVE_POLICIES = "model-based,static-peak,static-mean"
_APPLICATION = "paced"


def on_spark(
    *,
    policies: str | None,
    settings: Sequence[str],
    minutes: float,
    low: float,
    high: float,
    max_replicas: int,
    slo_s: float | None,
    out: Path | None,
    json_output: bool,
) -> None:
    from penstock.apps.feeding.load import Load
    from penstock.apps.registry import application_entry
    from penstock.control.spec import Manager
    from penstock.live.compare import STATIC_MEAN, STATIC_PEAK, check_out, compared
    from penstock.live.run import RunError
    from penstock.live.settings import LiveSettings
    from penstock.runtimes.spark.cluster import ClusterError

    static = (STATIC_PEAK, STATIC_MEAN)
    names = named.listed("--policies", policies or LIVE_POLICIES)
    managers = named.chosen(settings, policies=[name for name in names if name not in static]).operators
    by_name = {manager.name: manager for manager in managers}
    load = Load(low=low, high=high, seconds=60 * minutes)
    base = LiveSettings(out=check_out(out or Path("out/compare-spark")), minutes=minutes)
    try:
        summaries = list(
            compared(
                application_entry(_APPLICATION),
                [by_name.get(name) or Manager(name=name) for name in names],
                load,
                base=base,
                slo_s=slo_s,
                max_replicas=max_replicas,
                began=lambda label: screen.err.print(f"running {label} for {minutes:g} minutes"),
            )
        )
    except (ClusterError, RunError) as problem:
        screen.complain(problem)
        raise typer.Exit(1) from problem
    if json_output:
        screen.print_json({"runs": [summary.as_json() for summary in summaries]})
        return
    header = (
        "policy",
        "violations %",
        "after 1 min %",
        "p50 s",
        "p95 s",
        "replicas",
        "replica-seconds",
        "reconfigurations",
    )
    screen.print_table(
        header,
        [
            (
                summary.policy,
                *(
                    "-" if value is None else f"{value:.1f}"
                    for value in (
                        summary.violations_pct,
                        summary.violations_after_first_minute_pct,
                        summary.response_time_p50_s,
                        summary.response_time_p95_s,
                    )
                ),
                f"{summary.average_replicas:.2f}",
                f"{summary.replica_seconds:.0f}",
                str(summary.reconfigurations),
            )
            for summary in summaries
        ],
        title=f"Application {_APPLICATION} on Spark: {low:g} tuples/s, {high:g} in the middle half.",
    )
