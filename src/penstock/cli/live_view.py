"""A live run on the screen: while it goes on, and what came of it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.cli import screen
from penstock.reports.live_summary import FIXED_HEADER, beside, cells

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.live.fixed_replicas import Fixed
    from penstock.live.record import Interval, Summary
    from penstock.live.run import LiveRun


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


def print_summary(name: str, summary: "Summary", fixed: "Mapping[str, Fixed]") -> None:
    screen.print_table(("", name), cells(summary))
    if fixed:
        screen.print_table(FIXED_HEADER, beside(summary, fixed))
        screen.out.print("static: worked out with the micro-batches this run measured, under the same load")
