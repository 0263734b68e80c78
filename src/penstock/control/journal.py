"""What a run writes down, one JSON entry per line: enough to explain every change, and to replay it.

A journal begins with a `Header`. A controller that starts with a memory (restarted, or trained
in advance) writes it as `Remembered` before its first tick.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NamedTuple, TypeAlias, get_args

from penstock.control import journal_v1
from penstock.control.orders import Order
from penstock.control.plain_data import from_plain, parsed_json, to_plain
from penstock.control.plan import Plan
from penstock.control.spec import ControllerSpec, OperatorSpec
from penstock.domain.application import Application
from penstock.domain.errors import InputError
from penstock.domain.objective import Weights
from penstock.domain.observation import ApplicationObservation
from penstock.reconfigure.words import Command, Event, Record

SCHEMA = 2
# Fields that earlier versions wrote and nothing reads any more, by the kind of value they are in.
_RETIRED: Mapping[str, tuple[str, ...]] = {"Header": ("about",), "StartQuery": ("partitions",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Who decides in this run: what its controller was built from."""

    controller: ControllerSpec
    at_s: float | None = None
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The memory a controller started with, as `control.saved` makes it."""

    memory: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retuned:
    """From here on the same managers decide with other bounds, weights and measurements of their operators.

    It stands between two rounds and replaces what the header says about these.
    """

    at_s: float
    application: Application  # as measured
    operators: tuple[OperatorSpec, ...]
    weights: Weights
    source_rates: tuple[float, ...]
    memory: Mapping[str, Any]  # what they start with, as `control.saved` makes it
    reason: str


class Ticked(NamedTuple):
    """One round: what was seen, ordered and decided. What is to be done is `plan.to_do`."""

    seen: ApplicationObservation
    plan: Plan
    orders: tuple[Order, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """One step of a reconfiguration: what happened, and what was commanded then."""

    operator: str
    event: Event
    commands: tuple[Command, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconfigured:
    """A reconfiguration that ended."""

    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Anything else worth a line."""

    at_s: float
    text: str


Entry: TypeAlias = Header | Remembered | Retuned | Ticked | Stepped | Reconfigured | Noted


def latest_header(entries: Iterable[Entry]) -> Header | None:
    """Who decides at the end of a journal, as one header: the last, with what was retuned since."""
    latest: Header | None = None
    for entry in entries:
        if isinstance(entry, Header):
            latest = entry
        elif isinstance(entry, Retuned) and latest is not None:
            latest = replace(latest, controller=retuned_spec(latest.controller, entry))
    return latest


def retuned_spec(spec: ControllerSpec, change: Retuned) -> ControllerSpec:
    return replace(
        spec,
        application=change.application,
        operators=change.operators,
        weights=change.weights,
        source_rates=change.source_rates,
    )


def encoded(entry: Entry) -> str:
    """One line of JSON, without the line end."""
    return json.dumps(to_plain(entry, Entry), allow_nan=False, separators=(",", ":"))


def decoded(line: str) -> Entry:
    data = parsed_json(line, _without_retired)
    if not isinstance(data, dict):
        raise InputError("not an entry: it must be a JSON object")
    data = journal_v1.upgraded(data)
    if data.get("kind") == Header.__name__ and data.get("schema") != SCHEMA:
        raise InputError(f"schema {data.get('schema')}; this version reads schemas 1 and {SCHEMA}")
    for kind in get_args(Entry):
        if data.get("kind") == kind.__name__:
            entry: Entry = from_plain({name: v for name, v in data.items() if name != "kind"}, kind)
            if isinstance(entry, Ticked):
                _check_moments(entry.seen)
            return entry
    known = ", ".join(kind.__name__ for kind in get_args(Entry))
    raise InputError(f"entry of kind {data.get('kind')!r}; known kinds: {known}")


def _check_moments(seen: ApplicationObservation) -> None:
    """A measurement may be wrong, and whoever decides says so; when it was made, the run itself has said."""
    moments = {
        "the application": seen.at_s,
        **{f"operator '{one.operator}'": one.at_s for one in seen.operators},
    }
    for who, at_s in moments.items():
        if not isfinite(at_s):
            raise InputError(f"{Ticked.__name__}: {who} seen at {at_s} s; a time must be finite")


def _without_retired(data: dict[str, Any]) -> dict[str, Any]:
    """A JSON object as this version would have written it; called for every one, the inner ones first."""
    retired = _RETIRED.get(str(data.get("kind")), ())
    return {name: item for name, item in data.items() if name not in retired}


def decoded_lines(lines: Iterable[str]) -> Iterator[Entry]:
    """All entries; a last line that a crash cut off is left out, any other bad line is an error."""
    numbered = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    before: tuple[int, str] | None = None
    for latest in numbered:
        if before is not None:
            yield _decoded_at(*before)
        before = latest
    if before is None:
        return
    try:
        last = _decoded_at(*before)
    except InputError:
        if before[1].endswith("\n"):
            raise
        return
    yield last


def _decoded_at(number: int, line: str) -> Entry:
    try:
        return decoded(line)
    except InputError as problem:
        raise InputError(f"line {number}: {problem}") from problem
