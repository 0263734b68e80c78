"""A policy's own parameters, read off its class: the fields annotated with `Param`.

    patience: Annotated[int, Param("calm intervals before a replica goes", at_least=1)] = 10

The type, the default, one line of help and the bounds are stated there and nowhere else. A field
whose type is itself a dataclass with such fields (`LearningRates`) brings its own.
"""

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from math import isfinite
from numbers import Integral, Real
from types import NoneType
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

from penstock.domain.errors import InputError

Value: TypeAlias = bool | int | float | str | None
Values: TypeAlias = Mapping[str, Value]

_LARGEST = 2**53  # of whole numbers: up to here floating-point numbers hold them all
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True, slots=True)
class Param:
    """What a user may set: one line of help, and the values allowed."""

    help: str
    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None


class _Usual:
    """Marks a parameter whose default is worked out when the policy is built."""

    def __repr__(self) -> str:
        return "worked out"


USUAL = _Usual()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a policy, as its class declares it."""

    name: str
    kind: type  # bool, int, float or str
    default: Any  # USUAL where building the policy works it out
    declared: Param
    within: str | None = None  # the field that holds it, where that is a dataclass of its own

    @property
    def help(self) -> str:
        return self.declared.help

    @property
    def bounds(self) -> str:
        """The values allowed, in words; empty where all are."""
        limits = (
            ("at least", self.declared.at_least),
            ("above", self.declared.above),
            ("at most", self.declared.at_most),
            ("below", self.declared.below),
        )
        return " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)

    def parsed(self, text: str) -> Value:
        """The value a command line gives."""
        try:
            return self.checked(self._parsed(text.strip()))
        except ValueError as problem:
            if isinstance(problem, InputError):
                raise
            raise InputError(f"{self.name}={text}: {_ARTICLE[self.kind]} is expected") from None

    def _parsed(self, text: str) -> Value:
        if self.kind is bool:
            if text.lower() not in (*_TRUE, *_FALSE):
                raise ValueError
            return text.lower() in _TRUE
        value: Value = self.kind(text)
        return value

    def checked(self, value: Value) -> Value:
        """The value, of the right type and within bounds."""
        if value is None and self.default is None:
            return None
        if isinstance(value, Real) and not isinstance(value, bool):  # NumPy's numbers too
            if self.kind is float:
                value = float(value)
            elif self.kind is int and isinstance(value, Integral):
                value = int(value)
        if type(value) is not self.kind:
            raise InputError(f"{self.name}={value!r}: {_ARTICLE[self.kind]} is expected")
        if isinstance(value, int | float):
            if abs(value) > _LARGEST and isinstance(value, int):  # compiled code has no such numbers
                raise InputError(f"{self.name}: a whole number of at most {_LARGEST} is expected")
            if not isfinite(value):
                between = ", " if " and " in self.bounds else " and "
                limits = between.join(filter(None, ("finite", self.bounds)))
                raise InputError(f"{self.name}={value:g}: it must be {limits}")
            if not self._allows(value):
                raise InputError(f"{self.name}={value:g}: it must be {self.bounds}")
        return value

    def _allows(self, value: float) -> bool:
        declared = self.declared
        return (
            (declared.at_least is None or value >= declared.at_least)
            and (declared.above is None or value > declared.above)
            and (declared.at_most is None or value <= declared.at_most)
            and (declared.below is None or value < declared.below)
        )


_ARTICLE = {bool: "yes or no", int: "a whole number", float: "a number", str: "a word"}


@cache
def parameters_of(policy: type) -> tuple[Parameter, ...]:
    """The parameters of a policy's class, in field order."""
    if not is_dataclass(policy):
        return ()
    hints = get_type_hints(policy, include_extras=True)
    found: list[Parameter] = []
    for field in fields(policy):
        hint = hints[field.name]
        declared = next((extra for extra in get_args(hint)[1:] if isinstance(extra, Param)), None)
        if declared is not None and get_origin(hint) is Annotated:
            kind = _kind(policy, field.name, get_args(hint)[0])
            found.append(Parameter(name=field.name, kind=kind, default=_default(field), declared=declared))
        elif isinstance(hint, type) and is_dataclass(hint):
            preset = _default(field)
            for inner in parameters_of(hint):
                given = inner.default if preset is USUAL else getattr(preset, inner.name)
                found.append(replace(inner, default=given, within=field.name))
    return tuple(found)


def _kind(policy: type, name: str, hint: Any) -> type:
    options = [option for option in get_args(hint) or (hint,) if option is not NoneType]
    if len(options) != 1 or options[0] not in _ARTICLE:
        raise TypeError(f"{policy.__name__}.{name}: a parameter must be a bool, an int, a float or a str")
    kind: type = options[0]
    return kind


def _default(field: "Field[Any]") -> Any:
    if field.default is not MISSING:
        return field.default
    return USUAL if field.default_factory is MISSING else field.default_factory()


def with_parameters(policy: type, values: Values) -> dict[str, Any]:
    """Keyword arguments for a policy's class from checked values; parts of a field are put together."""
    arguments: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for parameter in parameters_of(policy):
        if parameter.name not in values:
            continue
        if parameter.within is None:
            arguments[parameter.name] = values[parameter.name]
        else:
            parts.setdefault(parameter.within, {})[parameter.name] = values[parameter.name]
    for field in fields(policy) if is_dataclass(policy) else ():
        if field.name in parts:
            arguments[field.name] = replace(_default(field), **parts[field.name])
    return arguments


def checked_values(owner: str, parameters: Mapping[str, Parameter], values: Values) -> dict[str, Value]:
    """Values by name, each of its type and within its bounds; an error names the nearest."""
    for name in values:
        if name not in parameters:
            raise unknown_parameter(owner, name, parameters)
    try:
        return {name: parameters[name].checked(value) for name, value in values.items()}
    except InputError as problem:
        raise InputError(f"{owner}: {problem}") from None


def unknown_parameter(owner: str, name: str, parameters: Mapping[str, Parameter]) -> InputError:
    near = difflib.get_close_matches(name, parameters, n=1)
    if near:
        hint = f"did you mean '{near[0]}'?"
    elif parameters:
        hint = f"it has {', '.join(parameters)}"
    else:
        hint = "it has none"
    return InputError(f"{owner}: no parameter '{name}'; {hint}")


def check_parameters(policy: object) -> None:
    """Refuse an instance whose parameters are out of bounds, however it was made."""
    kind: type = type(policy)
    for parameter in parameters_of(kind):
        holder = policy if parameter.within is None else getattr(policy, parameter.within)
        try:
            parameter.checked(getattr(holder, parameter.name))
        except InputError as problem:
            raise InputError(f"{kind.__name__}: {problem}") from None
