"""A live run on the screen: while it goes on, and what came of it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.cli import screen

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.live.fixed_replicas import Fixed
    from penstock.live.record import Interval, Summary
    from penstock.live.run import LiveRun

_MOST_LATE_PCT = 5.0  # of the intervals of a run that kept its objective
_SELDOM_FULL_PCT = 5.0  # of the intervals: a host that is full no more often needs no word


def watched(live: "LiveRun") -> "Summary":
    """Run it, in view: a table that changes, or a line per interval where there is no terminal."""
    from rich.live import Live

    if not screen.err.is_terminal:
        live.on_status = screen.err.print
        live.on_interval = lambda interval: screen.err.print(line(interval, live.began_s), soft_wrap=True)
        return live.run()
    with Live(console=screen.err, refresh_per_second=2, transient=True) as view:
        live.on_status = view.update
        live.on_interval = lambda interval: view.update(_view(interval, live))
        return live.run()


def _view(interval: "Interval", live: "LiveRun") -> "Table":
    """What is going on: rates, response time against the objective, replicas, decisions and why."""
    from rich.table import Table

    seen = interval.seen
    response = "-" if seen.response_time_s is None else f"{seen.response_time_s:.1f} s"
    table = Table(
        title=f"{seen.at_s - live.began_s:.0f} s   response {response} (objective {live.objective_s:g} s)",
        title_justify="left",
    )
    for column in ("operator", "replicas", "tuples/s", "response", "utilisation", "backlog"):
        table.add_column(column, justify="left" if column == "operator" else "right")
    for one in seen.operators:
        table.add_row(
            one.operator,
            str(one.replicas.total),
            *(
                "-" if value is None else f"{value:.{digits}f}"
                for value, digits in (
                    (one.arrival_rate, 0),
                    (one.response_time_s, 1),
                    (one.utilisation, 2),
                    (one.backlog, 0),
                )
            ),
        )
    table.caption = "\n".join((*interval.changed, *interval.reasons)[:6])
    return table


def line(interval: "Interval", began_s: float) -> str:
    """The same in one line."""
    seen = interval.seen
    rate = "-" if seen.source_rate is None else f"{seen.source_rate:.0f}"
    response = "-" if seen.response_time_s is None else f"{seen.response_time_s:.1f} s"
    replicas = ", ".join(f"{one.operator} {one.replicas.total}" for one in seen.operators)
    changed = "".join(f"; {text}" for text in interval.changed)
    return (
        f"{seen.at_s - began_s:4.0f} s: {rate} tuples/s, response {response}, replicas: {replicas}{changed}"
    )


def page(live: "LiveRun", summary: "Summary", name: str, fixed: "Mapping[str, Fixed]") -> str:
    """The report."""
    from penstock.live.record import row
    from penstock.reports.live_run import live_page

    def moment(at_s: float | None) -> str:
        return "-" if at_s is None else f"{at_s - live.began_s:.1f}"

    return live_page(
        title=f"{name} under {summary.policy}",
        setting=f"On Spark, {summary.seconds:.0f} s; response time at most {live.objective_s:g} s.",
        verdict=verdict(summary, live.objective_s, fixed),
        figures=_cells(summary),
        fixed=(_FIXED_HEADER, _beside(summary, fixed)),
        rows=[row(interval, live.began_s) for interval in live.intervals],
        objective_s=live.objective_s,
        changes=[
            (
                record.operator,
                moment(record.granted_at_s),
                moment(record.node_ready_at_s),
                moment(record.first_task_at_s),
                moment(record.ended_at_s),
                f"{record.downtime_s:.1f}",
                record.outcome.value,
            )
            for record in live.records
        ],
    )


def verdict(summary: "Summary", objective_s: float, fixed: "Mapping[str, Fixed]") -> str:
    """In one sentence: whether the objective was kept, and what that cost beside static peak.

    And in another, where the hosts were full: that more replicas could not help.
    """
    late = summary.violations_after_first_minute_pct
    which = "the intervals after the first minute"
    if late is None:
        late, which = summary.violations_pct, "the intervals"
    if late is None:
        return "nothing was measured"
    peak = fixed.get("static peak")
    cost = ""
    if peak is not None and peak.replica_seconds > 0:
        share = 100 * summary.replica_seconds / peak.replica_seconds
        cost = f", at {share:.0f} % of the replica-seconds of static peak"
    begins = "Missed its objective: kept" if late > _MOST_LATE_PCT else "Kept"
    return f"{begins} {100 - late:.0f} % of {which} inside {objective_s:g} s{cost}.{_full_host(summary)}"


def _full_host(summary: "Summary") -> str:
    full = summary.host_full_pct
    if full is None or full <= _SELDOM_FULL_PCT:
        return ""
    return (
        f" The host's CPU was full in {full:.0f} % of the intervals: more replicas there cannot help; "
        "a faster or a second host would."
    )


_FIXED_HEADER = ("", "violations", "p50", "p95", "replicas", "replica-seconds")


def print_summary(name: str, summary: "Summary", fixed: "Mapping[str, Fixed]") -> None:
    screen.print_table(("", name), _cells(summary))
    if fixed:
        screen.print_table(_FIXED_HEADER, _beside(summary, fixed))
        screen.out.print("static: worked out with the micro-batches this run measured, under the same load")


def _beside(summary: "Summary", fixed: "Mapping[str, Fixed]") -> list[tuple[str, ...]]:
    """The run, and what fixed numbers of replicas would have done."""
    ours = (
        summary.policy,
        _percent(summary.violations_pct),
        _seconds(summary.response_time_p50_s),
        _seconds(summary.response_time_p95_s),
        f"{summary.average_replicas:.2f}",
        f"{summary.replica_seconds:.0f}",
    )
    others = [
        (
            name,
            _percent(one.violations_pct),
            _seconds(one.response_time_p50_s),
            _seconds(one.response_time_p95_s),
            ", ".join(f"{operator} {count}" for operator, count in one.replicas.items()),
            f"{one.replica_seconds:.0f}",
        )
        for name, one in fixed.items()
    ]
    return [ours, *others]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"


def _cells(summary: "Summary") -> list[tuple[str, str]]:
    late = "-" if summary.violations_pct is None else f"{summary.violations_pct:.1f} % of intervals"
    return [
        ("tuples", f"{summary.tuples:,} in {summary.seconds:.0f} s"),
        *([("still waiting at the end", f"{summary.unfinished:,}")] if summary.unfinished else []),
        ("violations", late),
        ("response time p50", _seconds(summary.response_time_p50_s)),
        ("response time p95", _seconds(summary.response_time_p95_s)),
        ("response time p99", _seconds(summary.response_time_p99_s)),
        ("replicas (mean)", f"{summary.average_replicas:.2f}"),
        ("replica-seconds", f"{summary.replica_seconds:.0f}"),
        ("cost", f"{summary.cost:.3f}"),
        ("reconfigurations", str(summary.reconfigurations)),
        ("downtime", f"{summary.downtime_pct:.1f} %"),
        *(
            []
            if summary.host_full_pct is None
            else [("host's CPU full", f"{summary.host_full_pct:.1f} % of intervals")]
        ),
    ]
