"""What a controller remembers as arrays and plain data, and back: a restarted one continues where it was."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.random import PCG64, Generator

from penstock.control.hierarchy import ManagersMemory
from penstock.control.loop import Controller, ControllerMemory
from penstock.control.plain_data import from_plain, packed, to_plain, unpacked
from penstock.control.watch import SafetyMemory
from penstock.domain.errors import InputError
from penstock.policy.kernel import InPlace, is_compiled
from penstock.policy.memory import learned, with_learned

SCHEMA = 1
_APPLICATION = "application"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Saved:
    """Arrays by name, and everything else as JSON data."""

    arrays: Mapping[str, npt.NDArray[Any]]
    state: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """What is not in arrays, as it is written down."""

    schema: int
    policies: Mapping[str, Any]
    granted_at_s: float | None
    changed_at_s: float | None
    decided_at_s: Mapping[str, float]
    safety: SafetyMemory
    rngs: Mapping[str, Mapping[str, Any]]


def saved(memory: ControllerMemory) -> Saved:
    """All of a memory; what policies were given (node types, costs, parameters) belongs to the controller."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    policies: dict[str, Any] = {}
    for name, part in _parts(memory.managers).items():
        if _in_arrays(part):
            arrays |= {f"{name}/{path}": array for path, array in learned(part).items()}
        else:
            policies[name] = _plain(name, part)
    managers = memory.managers
    state = {
        "schema": SCHEMA,
        "policies": policies,
        "granted_at_s": managers.granted_at_s,
        "changed_at_s": managers.changed_at_s,
        "decided_at_s": dict(managers.decided_at_s),
        "safety": to_plain(memory.safety, SafetyMemory),
        "rngs": {name: _rng_state(name, rng) for name, rng in memory.rngs.items()},
    }
    return Saved(arrays=arrays, state=state)


def restored(controller: Controller, kept: Saved) -> ControllerMemory:
    """The memory that was saved, for a controller built the same way."""
    if kept.state.get("schema") != SCHEMA:
        schema = kept.state.get("schema")
        raise InputError(f"saved memory: schema {schema}; this version reads schema {SCHEMA}")
    try:
        state = from_plain(dict(kept.state), _State)
    except InputError as problem:
        raise InputError(f"saved memory: {str(problem).removeprefix('_')}") from problem
    managers = controller.managers
    operators = {
        name: _restored(f"operator '{name}'", f"operators/{name}", policy.initial(), kept)
        for name, policy in managers.operators.items()
    }
    stranger = {_operator_of(name) for name in _names(kept) if name != _APPLICATION} - set(operators)
    if stranger:
        raise InputError(f"saved memory: operator '{sorted(stranger)[0]}' is not managed by this controller")
    missing = {*managers.operators, *managers.nodes} - set(state.rngs)
    if missing:
        raise InputError(
            f"saved memory: operator '{sorted(missing)[0]}', which this controller manages, is missing"
        )
    return ControllerMemory(
        managers=ManagersMemory(
            operators=operators,
            application=_restored("application manager", _APPLICATION, managers.application.initial(), kept),
            granted_at_s=state.granted_at_s,
            changed_at_s=state.changed_at_s,
            decided_at_s=dict(state.decided_at_s),
        ),
        safety=_safety(controller, state.safety),
        rngs={name: _rng(name, of) for name, of in state.rngs.items()},
    )


def _safety(controller: Controller, kept: SafetyMemory) -> SafetyMemory:
    if controller.safety is not None:
        return kept
    if kept.overrides or kept.paused_until_s is not None:  # a person's order is not dropped silently
        raise InputError(
            "saved memory: orders are in force, and this controller has no safety chain for them"
        )
    return SafetyMemory()


def as_plain(kept: Saved) -> dict[str, Any]:
    """For JSON, with arrays packed into text."""
    return {"state": dict(kept.state), "arrays": {name: packed(array) for name, array in kept.arrays.items()}}


def of_plain(data: Mapping[str, Any]) -> Saved:
    try:
        arrays, state = data["arrays"], data["state"]
    except KeyError as problem:
        raise InputError(f"saved memory: {problem} is missing") from problem
    for name, part in (("arrays", arrays), ("state", state)):
        if not isinstance(part, Mapping):
            raise InputError(f"saved memory: '{name}' is no JSON object")
    return Saved(arrays={name: unpacked(array) for name, array in arrays.items()}, state=state)


def _parts(memory: ManagersMemory) -> dict[str, Any]:
    operators = {f"operators/{name}": part for name, part in memory.operators.items()}
    parts = {**operators, _APPLICATION: memory.application}
    return {name: part.memory if isinstance(part, InPlace) else part for name, part in parts.items()}


def _in_arrays(part: Any) -> bool:
    """Whether everything that changes is in arrays: a compiled policy's memory, or several by operator."""
    return is_compiled(part) or isinstance(part, Mapping)


def _names(kept: Saved) -> set[str]:
    of_arrays = {"/".join(name.split("/")[:-1]) for name in kept.arrays}
    return of_arrays | set(kept.state["policies"])


def _operator_of(name: str) -> str:
    """Whose memory it is; a name that is no path is nobody's."""
    _, _, whose = name.partition("/")
    return whose.split("/")[0] or name


def _plain(name: str, part: Any) -> Any:
    try:
        return to_plain(part, type(part))
    except TypeError as problem:
        raise InputError(
            f"{name}: a memory of type {type(part).__name__} cannot be saved ({problem}); "
            "make it a number, an array, or a frozen dataclass of such"
        ) from problem


def _restored(who: str, name: str, fresh: Any, kept: Saved) -> Any:
    if _in_arrays(fresh):
        prefix = f"{name}/"
        mine = {path.removeprefix(prefix): a for path, a in kept.arrays.items() if path.startswith(prefix)}
        try:
            return with_learned(fresh, mine)
        except InputError as problem:
            raise InputError(f"{who}: {problem}") from problem
    if name not in kept.state["policies"]:
        raise InputError(f"{who}: nothing was saved for it")
    return from_plain(kept.state["policies"][name], type(fresh))


def _rng_state(name: str, rng: Generator) -> dict[str, Any]:
    state = rng.bit_generator.state
    if state.get("bit_generator") != "PCG64":
        raise InputError(f"rng of '{name}': {state.get('bit_generator')} cannot be saved; use default_rng")
    return dict(state)


def _rng(name: str, state: Mapping[str, Any]) -> Generator:
    rng = np.random.Generator(PCG64(0))
    try:
        rng.bit_generator.state = dict(state)
    except (TypeError, ValueError, KeyError) as problem:
        raise InputError(f"saved memory: rng of '{name}': {problem}") from problem
    return rng
