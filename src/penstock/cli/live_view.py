"""A live run on the screen: while it goes on, and what came of it."""

import logging
import signal
from collections.abc import Mapping
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from penstock.cli import screen
from penstock.reports.live_summary import FIXED_HEADER, beside, cells

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

    from penstock.live.fixed_replicas import Fixed
    from penstock.live.record import Interval, Summary
    from penstock.live.run import LiveRun

_LOG = "python.log"  # in the work folder
_LONGEST_LOG = 1_000_000  # bytes


class Heard(RotatingFileHandler):
    """What libraries have to say, traces and all; what a full disk does not take is not said elsewhere."""

    def __init__(self, file: "Path") -> None:
        super().__init__(file, maxBytes=_LONGEST_LOG, backupCount=1, delay=True)

    @override
    def handleError(self, record: logging.LogRecord) -> None:
        pass

    @override
    def close(self) -> None:
        with suppress(OSError):
            super().close()


class _Stopping:
    """Ctrl-C or SIGTERM ends a run as if its time were up; a second one ends it at once."""

    def __init__(self, live: "LiveRun") -> None:
        self._live, self._before = live, dict[signal.Signals, Any]()

    def listen(self) -> None:
        """Once there is something to report: until then it is ended at once, and Spark, which has a handler
        of its own, puts that in place when its session starts."""
        if not self._before and not self._live.stopping.is_set():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        self._live.stopping.set()
        self.end()

    def end(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()


def watched(live: "LiveRun", *, stoppable: bool = False) -> "Summary":
    """Run it, in view: a table that changes, or a line per interval where there is no terminal.

    `stoppable` says that Ctrl-C ends the run, and not the command.
    """
    from rich.live import Live

    stopping = _Stopping(live)

    def shown(interval: "Interval") -> None:
        if stoppable:
            stopping.listen()
        if screen.err.is_terminal:
            view.update(_view(interval, live))
        else:
            screen.err.print(line(interval, live.began_s), soft_wrap=True)

    live.on_interval, live.on_problem = shown, screen.complain
    heard = Heard(live.work / _LOG)
    logging.getLogger().addHandler(heard)  # else libraries print what they have to say
    try:
        if not screen.err.is_terminal:
            live.on_status = screen.err.print
            return live.run()
        with Live(console=screen.err, refresh_per_second=2, transient=True) as view:
            live.on_status = view.update
            return live.run()
    finally:
        stopping.end()
        logging.getLogger().removeHandler(heard)
        heard.close()


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
    backlogs = [one.backlog for one in seen.operators]
    waiting = "-" if None in backlogs else f"{sum(one for one in backlogs if one):.0f}"
    changed = "".join(f"; {text}" for text in interval.changed)
    return (
        f"{seen.at_s - began_s:4.0f} s: {rate} tuples/s, response {response}, {waiting} waiting, "
        f"replicas: {replicas}{changed}"
    )


def print_summary(name: str, summary: "Summary", fixed: "Mapping[str, Fixed]") -> None:
    screen.print_table(("", name), cells(summary))
    if fixed:
        screen.print_table(FIXED_HEADER, beside(summary, fixed))
        screen.out.print("static: worked out with the micro-batches this run measured, under the same load")
