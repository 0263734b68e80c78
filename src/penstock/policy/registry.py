"""Every policy by name, from the one entry beside its code.

    @operator_policy("patient", has_bounds=True)
    @dataclass(frozen=True, kw_only=True)
    class Patient: ...

The command line and its help, the journal, sweeps, the contract tests and the tables of the
docs read this registry; nothing else lists policies. Built-in ones are found by importing
the modules of `policy.operator`, `policy.application` and `policy.node`; those of installed
packages through the entry-point group `penstock.policies`; a user's own class is loaded by
`module:Class`, but only where a person asks for it: a name in a file never imports code.
"""

import difflib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from threading import RLock
from typing import Any, TypeVar

from penstock.compiled import is_ours
from penstock.domain.errors import InputError
from penstock.policy.knowledge import ApplicationKnowledge, NodeKnowledge, OperatorKnowledge
from penstock.policy.parameters import (
    USUAL,
    Parameter,
    Value,
    Values,
    checked_values,
    parameters_of,
    unknown_parameter,
    with_parameters,
)

GROUP = "penstock.policies"
T = TypeVar("T", bound=type)


class Level(Enum):
    """What a policy decides for."""

    OPERATOR = "operator"
    APPLICATION = "application"
    NODE = "node"

    @property
    def word(self) -> str:
        """What messages call such a policy."""
        return "policy" if self is Level.OPERATOR else f"{self.value} policy"

    @property
    def method(self) -> str:
        """The method by which a policy without an entry is recognised."""
        return {"operator": "decide", "application": "grant", "node": "propose"}[self.value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Facts about a policy that other code acts on."""

    chance: bool = False  # what it does depends on the seed
    needs_model: bool = False  # its operators must have been measured before its first decision
    has_bounds: bool = False  # it decides by a response-time bound and weights, which can be tuned
    unbound_by: str | None = None  # a parameter that, once set, leaves no such bound
    decides_itself: bool = False  # for all operators: they have no managers of their own
    tunes: bool = False  # it sets the bounds and weights of Operator Managers
    anticipates: bool = False  # it decides by the load that arrives, which a change does not disturb
    plans_ahead: bool = False  # it decides by forecasts, where there are any


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEntry:
    """One name, what it stands for, and what is known about it without building it."""

    name: str
    level: Level
    policy: type
    traits: Traits
    fixed: Mapping[str, Any] = field(default_factory=dict)  # fields that the name decides
    published: Values = field(default_factory=dict)  # defaults of the published simulator

    @property
    def title(self) -> str:
        """The first line of the class's docstring."""
        return (inspect.getdoc(self.policy) or self.policy.__name__).splitlines()[0]

    @property
    def parameters(self) -> dict[str, Parameter]:
        return {p.name: p for p in parameters_of(self.policy) if p.name not in self.fixed}

    def parsed(self, name: str, text: str) -> Value:
        """A parameter's value from a command line."""
        if name not in self.parameters:
            raise unknown_parameter(self.owner, name, self.parameters)
        try:
            return self.parameters[name].parsed(text)
        except InputError as problem:
            raise InputError(f"{self.owner}: {problem}") from None

    def checked(self, values: Values) -> dict[str, Value]:
        return checked_values(self.owner, self.parameters, values)

    @property
    def owner(self) -> str:
        return f"{self.level.word} '{self.name}'"

    def build(self, known: OperatorKnowledge | ApplicationKnowledge | NodeKnowledge, values: Values) -> Any:
        """The policy, built from what is known, with these parameters instead of its defaults."""
        published = self.published if getattr(known, "as_published", False) else {}
        chosen = self.checked({**published, **values})
        usual: Callable[[Any], dict[str, Any]] | None = getattr(self.policy, "usual", None)
        given = {
            **({} if usual is None else usual(known)),
            **self.fixed,
            **with_parameters(self.policy, chosen),
        }
        for name, parameter in self.parameters.items():
            if parameter.default is USUAL and parameter.within is None and name not in given:
                raise InputError(f"{self.owner}: parameter '{name}' has no default; set it: {parameter.help}")
        return self.policy(**self._filled(known, given), **given)

    def _filled(self, known: object, given: Mapping[str, Any]) -> dict[str, Any]:
        filled: dict[str, Any] = {}
        if not is_dataclass(self.policy):
            return filled
        declared = {parameter.within or parameter.name for parameter in self.parameters.values()}
        for one in fields(self.policy):
            if one.name in given or one.name in declared or not one.init:
                continue
            if hasattr(type(known), one.name) or one.name in vars(known):
                filled[one.name] = getattr(known, one.name)
            elif one.default is MISSING and one.default_factory is MISSING:
                raise InputError(
                    f"{self.owner}: nothing known fills its field '{one.name}'; make it a Param, give "
                    f"it a default, or name it after a field of {type(known).__name__}"
                )
        return filled


_entries: dict[Level, dict[str, PolicyEntry]] = {level: {} for level in Level}
_discovered: set[Level] = set()
_installed: list[bool] = []
_broken: dict[str, str] = {}  # installed policies that could not be loaded, and why
_lock = RLock()

Names = str | Mapping[str, Mapping[str, Any]]


def operator_policy(
    names: Names,
    *,
    chance: bool = False,
    needs_model: bool = False,
    has_bounds: bool = False,
    unbound_by: str | None = None,
    anticipates: bool = False,
    plans_ahead: bool = False,
    published: Values | None = None,
) -> Callable[[T], T]:
    """Register the class of an operator policy under its name, or under names that each fix some fields."""
    traits = Traits(
        chance=chance,
        needs_model=needs_model,
        has_bounds=has_bounds,
        unbound_by=unbound_by,
        anticipates=anticipates,
        plans_ahead=plans_ahead,
    )
    return _entering(Level.OPERATOR, names, traits, published)


def application_policy(
    names: Names,
    *,
    needs_model: bool = False,
    decides_itself: bool = False,
    tunes: bool = False,
    anticipates: bool = False,
) -> Callable[[T], T]:
    """Register the class of an application policy."""
    traits = Traits(
        needs_model=needs_model,
        decides_itself=decides_itself,
        tunes=tunes,
        chance=tunes,
        anticipates=anticipates,
    )
    return _entering(Level.APPLICATION, names, traits, None)


def node_policy(name: str) -> Callable[[T], T]:
    """Register the class of a node policy."""
    return _entering(Level.NODE, name, Traits(chance=True), None)


def _entering(level: Level, names: Names, traits: Traits, published: Values | None) -> Callable[[T], T]:
    variants = {names: {}} if isinstance(names, str) else names

    def enter(policy: T) -> T:
        for name, fixed in variants.items():
            there = _entries[level].get(name)
            if there is not None and _place(there.policy) != _place(policy):
                raise InputError(f"{level.word} '{name}': {_place(there.policy)} already has that name")
            _entries[level][name] = PolicyEntry(
                name=name, level=level, policy=policy, traits=traits, fixed=fixed, published=published or {}
            )
        return policy

    return enter


def _place(policy: type) -> str:
    return f"{policy.__module__}:{policy.__qualname__}"


def entries(level: Level) -> dict[str, PolicyEntry]:
    """All that is known: built in, installed, or loaded in this process."""
    _discover(level)
    _discover_installed()
    return dict(sorted(_entries[level].items()))


def entry(level: Level, name: str) -> PolicyEntry:
    """The entry of this name; an error names the nearest one."""
    _discover(level)
    if name not in _entries[level]:
        _discover_installed()
    if name not in _entries[level]:
        raise _unknown(level, name)
    return _entries[level][name]


def load(level: Level, name: str) -> PolicyEntry:
    """The entry of a name that a person gave; `module:Class` imports the module."""
    if ":" not in name or name in _entries[level]:
        return entry(level, name)
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute, None)
    except ModuleNotFoundError as problem:
        raise InputError(
            f"{level.word} '{name}': no module '{problem.name}' in this folder or on the Python path"
        ) from problem
    except Exception as problem:  # whatever a user's module raises
        what = " ".join(f"{type(problem).__name__}: {problem}".split())
        raise InputError(f"{level.word} '{name}': importing '{module}' failed: {what}") from problem
    if not isinstance(found, type):
        raise InputError(f"{level.word} '{name}': module '{module}' has no class '{attribute}'")
    return _enter_as(level, name, found)


def known_as(level: Level, policy: str | type) -> PolicyEntry:
    """The entry of a policy that a program gives by name or as a class."""
    if isinstance(policy, str):
        return load(level, policy)
    _discover(level)
    for one in _entries[level].values():
        if one.policy is policy and is_ours(policy):
            return one
    return _enter_as(level, _place(policy), policy)  # a name by which another process can load it


def load_any(name: str) -> PolicyEntry:
    """The same for a class of any level, in a process that is given only its name."""
    problems: list[InputError] = []
    for level in Level:
        try:
            return load(level, name)
        except InputError as problem:
            problems.append(problem)
    if ":" in name:
        raise problems[0]
    known = {one: entry for level in Level for one, entry in entries(level).items()}
    near = difflib.get_close_matches(name.lower(), known, n=1)
    raise InputError(f"policy '{name}': unknown; did you mean '{near[0]}'?") if near else problems[0]


def _enter_as(level: Level, name: str, policy: type) -> PolicyEntry:
    """A class under its own name; without an entry it is assumed to depend on chance."""
    own = next((one for one in _entries[level].values() if one.policy is policy), None)
    if own is None and not callable(getattr(policy, level.method, None)):
        raise InputError(f"{level.word} '{name}': {policy.__name__} has no method '{level.method}'")
    made = (
        PolicyEntry(name=name, level=level, policy=policy, traits=Traits(chance=True))
        if own is None
        else replace(own, name=name)
    )
    with _lock:
        _entries[level][name] = made
    return made


def _discover(level: Level) -> None:
    with _lock:
        if level in _discovered:
            return
        package = import_module(f"penstock.policy.{level.value}")
        for module in pkgutil.iter_modules(package.__path__):
            import_module(f"{package.__name__}.{module.name}")
        _discovered.add(level)


def _discover_installed() -> None:
    """Policies from installed packages; one that cannot be imported is left out."""
    with _lock:
        if _installed:
            return
        _installed.append(True)
        for point in entry_points(group=GROUP):
            _enter_installed(point)


def _enter_installed(point: EntryPoint) -> None:
    try:
        policy = point.load()
    except Exception as problem:  # a broken package must not take the others down
        what = " ".join(f"{type(problem).__name__}: {problem}".split())
        _broken[point.name] = f"importing '{point.value}' failed: {what}"
        return
    levels = [level for level in Level if callable(getattr(policy, level.method, None))]
    if not isinstance(policy, type) or not levels:
        _broken[point.name] = f"'{point.value}' is not a class of policies"
        return
    for level in levels:
        _discover(level)
        if point.name not in _entries[level]:
            _enter_as(level, point.name, policy)


def broken() -> list[InputError]:
    """What is wrong with installed policies that could not be loaded."""
    _discover_installed()
    return [InputError(f"installed policy '{name}': {why}") for name, why in _broken.items()]


def _unknown(level: Level, name: str) -> InputError:
    known = _entries[level]
    if name in _broken:
        return InputError(f"{level.word} '{name}': {_broken[name]}")
    if ":" in name:
        return InputError(
            f"{level.word} '{name}': not loaded; code is imported only where you ask for it: "
            f"give --policy {name}"
        )
    near = difflib.get_close_matches(name.lower().replace("+", "-plus"), known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"choose one of {', '.join(sorted(known))}"
    return InputError(f"{level.word} '{name}': unknown; {hint}")
