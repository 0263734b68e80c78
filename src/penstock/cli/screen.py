"""What goes to the terminal: results on standard output, progress on standard error."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

# No markup: names of files and policies are shown as they are, square brackets and all.
out = Console(highlight=False, markup=False)
if not out.is_terminal:
    out.width = 200  # rich takes a pipe for a terminal of 80 columns, and would cut figures off
err = Console(stderr=True, highlight=False, markup=False)


def print_json(value: Any) -> None:
    """One JSON object and nothing else."""
    print(json_text(value))


def json_text(value: Any) -> str:
    return json.dumps(value, indent=2, allow_nan=False)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, title: str | None = None) -> None:
    table = Table(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD)
    for index, name in enumerate(header):
        table.add_column(name, justify="left" if index == 0 else "right", no_wrap=index == 0)
    for row in rows:
        table.add_row(*row)
    out.print(table)


@contextmanager
def progress(what: str, total: int | None) -> Iterator["Bar"]:
    """A bar on standard error while something long goes on."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bars:
        yield Bar(bars, bars.add_task(what, total=total))


@contextmanager
def busy(what: str) -> Iterator[None]:
    """A spinner on standard error while something goes on whose length is not known."""
    with err.status(what):
        yield


class Bar:
    """One bar of a progress display."""

    def __init__(self, bars: Progress, task: Any) -> None:
        self._bars, self._task = bars, task

    def of(self, total: int) -> None:
        self._bars.update(self._task, total=total)

    def say(self, what: str) -> None:
        self._bars.update(self._task, description=what)

    def advance(self) -> None:
        self.advance_by(1)

    def advance_by(self, count: int) -> None:
        self._bars.advance(self._task, count)


def complain(problem: Exception) -> None:
    """What went wrong, in one line however long it is."""
    err.print(f"penstock: {problem}", soft_wrap=True, markup=False, highlight=False)
