"""Making a journal's decisions again: the first difference, or none."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.control.journal import Entry, Header, Remembered, Retuned, Ticked, retuned_spec
from penstock.control.loop import Controller, ControllerMemory, plan
from penstock.control.plan import Plan
from penstock.control.saved import of_plain, restored
from penstock.control.spec import ControllerSpec
from penstock.domain.errors import InputError

Build = Callable[[ControllerSpec], tuple[Controller, ControllerMemory]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where a replay first differs from what was recorded."""

    tick: int  # from 1
    at_s: float
    part: str  # of the plan, with the operator where there is one
    recorded: str
    replayed: str

    def __str__(self) -> str:
        where = f"tick {self.tick} at {self.at_s:g} s: {self.part}"
        return f"{where}: recorded {self.recorded}, replayed {self.replayed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """How far a replay got; without a difference, to the end."""

    ticks: int
    difference: Difference | None


def replay(entries: Iterable[Entry], build: Build) -> Replayed:
    """Run every recorded round again. `build` makes the controller a specification describes."""
    now: tuple[Controller, ControllerMemory] | None = None
    spec: ControllerSpec | None = None
    ticks = 0
    for entry in entries:
        if isinstance(entry, Header):
            spec, now = entry.controller, None  # built once there is something to decide, or no other
        if not isinstance(entry, Remembered | Retuned | Ticked):
            continue
        if spec is None:
            raise InputError("journal: it does not begin with a header; nothing says who decided")
        if isinstance(entry, Retuned):
            spec, now = retuned_spec(spec, entry), None
        controller, memory = now or build(spec)
        if isinstance(entry, Remembered | Retuned):
            now = controller, restored(controller, of_plain(entry.memory))
            continue
        again, memory = plan(controller, memory, entry.seen, entry.orders)
        now = controller, memory
        ticks += 1
        different = _difference(entry.plan, again)
        if different is not None:
            part, recorded, replayed = different
            found = Difference(
                tick=ticks, at_s=entry.seen.at_s, part=part, recorded=recorded, replayed=replayed
            )
            return Replayed(ticks=ticks, difference=found)
    if spec is not None and now is None:
        build(spec)  # raises for one that nobody could have decided with
    return Replayed(ticks=ticks, difference=None)


def _difference(recorded: Plan, replayed: Plan) -> tuple[str, str, str] | None:
    for name in sorted({*recorded.decisions, *replayed.decisions}):
        before, after = recorded.decisions.get(name), replayed.decisions.get(name)
        if before != after:
            return f"decision of operator '{name}'", str(before), str(after)
    for part, written, now in zip(Plan._fields, recorded, replayed, strict=True):
        if part != "decisions" and written != now:
            return (part, *_first(written, now))
    return None


def _first(before: Any, after: Any) -> tuple[str, str]:
    """The first items that differ, where both are sequences."""
    if type(before) is type(after) is tuple:
        for one, other in zip(before, after, strict=False):
            if one != other:
                return str(one), str(other)
        return f"{len(before)} of them", f"{len(after)}"
    return str(before), str(after)
