"""`penstock compare --runtime spark`: the same load live, one policy after another."""

from pathlib import Path

import typer

from penstock.cli import screen
from penstock.domain.errors import InputError
from penstock.simulation.catalogue import check_policy_name

MOST_ON_SPARK = 3  # replicas of an operator that a small machine can carry
_DEFAULT_POLICIES = "model-based,static-peak,static-mean"
_APPLICATION = "paced"


def on_spark(
    *,
    policies: str | None,
    minutes: float,
    low: float,
    high: float,
    max_replicas: int,
    slo_s: float | None,
    out: Path | None,
    json_output: bool,
) -> None:
    from penstock.live.applications import Load
    from penstock.live.compare import STATIC_MEAN, STATIC_PEAK, check_out, compared
    from penstock.live.run import RunError
    from penstock.live.settings import LiveSettings
    from penstock.runtimes.spark.cluster import ClusterError

    names = list(dict.fromkeys(n.strip() for n in (policies or _DEFAULT_POLICIES).split(",") if n.strip()))
    for name in names:
        if name not in (STATIC_PEAK, STATIC_MEAN):
            check_policy_name(name)
    if not names:
        raise InputError("--policies: name at least one policy")
    load = Load(low=low, high=high, seconds=60 * minutes)
    base = LiveSettings(out=check_out(out or Path("out/compare-spark")), minutes=minutes)
    try:
        summaries = list(
            compared(
                _APPLICATION,
                names,
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
        title=f"Application {_APPLICATION} on Spark: {low:g} tuples/s, in the middle half {high:g}.",
    )
