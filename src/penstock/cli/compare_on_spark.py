"""`penstock compare --runtime spark`: the same load live, one contender after another."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from penstock.cli import live_view, screen
from penstock.cli import policy_options as named
from penstock.files import write_whole

if TYPE_CHECKING:
    from penstock.live.run import LiveRun
    from penstock.live.side_by_side import Contender

MOST_ON_SPARK = 8  # replicas of an operator, where it waits more than it works
LIVE_POLICIES = "adaptive,ds2,threshold-c,dynamic-allocation,static-mean,static-peak"
LIVE_APPLICATION = "lookups"
PAGE = "comparison.html"


def on_spark(
    *,
    policies: str | None,
    settings: Sequence[str],
    application: str | None,
    minutes: float,
    interval_s: float,
    shape: str,
    low: float,
    high: float,
    max_replicas: int,
    slo_s: float | None,
    out: Path | None,
    json_output: bool,
) -> None:
    from penstock.apps.feeding.load import Load
    from penstock.apps.registry import load_application
    from penstock.control.spec import Manager
    from penstock.live.compare import check_out, prepared
    from penstock.live.run import RunError
    from penstock.live.settings import LiveSettings
    from penstock.live.side_by_side import DYNAMIC_ALLOCATION, STATIC_MEAN, STATIC_PEAK, Comparison
    from penstock.reports.side_by_side import HEADER, NOTE, cells, side_by_side_page
    from penstock.runtimes.spark.cluster import ClusterError

    names = named.listed("--policies", policies or LIVE_POLICIES)
    others = (STATIC_PEAK, STATIC_MEAN, DYNAMIC_ALLOCATION)
    managers = named.chosen(settings, policies=[name for name in names if name not in others]).operators
    given = iter(managers)
    contenders = [Manager(name=name) if name in others else next(given) for name in names]
    if application is not None and ":" in application:
        named.look_here()
    entry = load_application(application or LIVE_APPLICATION)
    folder = check_out(out or Path("out/compare-spark"))
    runs = prepared(
        entry,
        list({one.name: one for one in contenders}.values()),  # a policy may have several names
        Load(shape=shape, low=low, high=high, seconds=60 * minutes),
        base=LiveSettings(out=folder, minutes=minutes),
        slo_s=slo_s,
        max_replicas=max_replicas,
        interval_s=interval_s,
    )
    objective_s = runs[0].objective_s
    setting = (
        f"Application {entry.name} on Spark, each for {minutes:g} minutes under the same load ({shape}, "
        f"{low:g} to {high:g} tuples/s); response time at most {objective_s:g} s; up to {max_replicas} "
        f"replicas of an operator. {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the first."
    )
    done: list[Contender] = []
    try:
        for number, live in enumerate(runs, 1):
            screen.err.print(f"{number} of {len(runs)}: {live.settings.label}, {minutes:g} minutes")
            done.append(_watched(live, entry.name))
    except (ClusterError, RunError) as problem:
        screen.complain(problem)
        raise typer.Exit(1) from problem
    comparison = Comparison(objective_s=objective_s, contenders=tuple(done))
    page = folder / PAGE
    title = f"{entry.name} on Spark: side by side"
    write_whole(page, side_by_side_page(comparison, title=title, setting=setting))
    told = {"application": entry.name, "setting": setting, **comparison.as_json(), "page": str(page)}
    write_whole(folder / "comparison.json", screen.json_text(told))
    if json_output:
        screen.print_json(told)
        return
    screen.print_table(HEADER, [cells(comparison, one) for one in done], title=setting)
    screen.out.print(NOTE, soft_wrap=True)
    for finding in comparison.findings():
        screen.out.print(finding.told, soft_wrap=True)
    screen.out.print(f"plots: {page}", soft_wrap=True)


def _watched(live: "LiveRun", application: str) -> "Contender":
    """One run in view; what it leaves in its folder stays, whatever becomes of the next."""
    from penstock.live.side_by_side import Contender, moments_of
    from penstock.reports.live_run import page_of

    out = live.settings.out
    with live.owner:
        summary = live_view.watched(live)
        write_whole(out / "report.html", page_of(live, summary, application, {}))
        write_whole(out / "summary.json", screen.json_text(summary.as_json()))
    return Contender(summary=summary, moments=moments_of(live.kept.course, live.began_s))
