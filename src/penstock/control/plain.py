"""Values as plain data, for JSON, and back: the type hints of our own frozen values say how.

None stays None, infinite numbers become "inf", a value of a union carries its class as
"kind". What was written with fewer fields than a class has now gets their defaults; unknown
fields are an error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from penstock.domain.errors import InputError

T = TypeVar("T")

_SCALARS = (bool, int, float, str)


def to_plain(value: Any, hint: Any) -> Any:
    """`value`, which has the type `hint`, as dicts, lists, strings, numbers, booleans and None."""
    options = _options(hint)
    if value is None or hint is Any:
        return value
    if len(options) > 1:
        return _tagged(value, options)
    (kind,) = options
    if kind is float:
        return float(value) if isfinite(value) else str(float(value))
    if kind in _SCALARS:
        return kind(value)
    return _plain_whole(value, kind)


def _plain_whole(value: Any, kind: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        return [to_plain(item, part) for item, part in zip(value, _parts(inner, len(value)), strict=True)]
    if origin is frozenset:
        return sorted(to_plain(item, inner[0]) for item in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {str(key): to_plain(item, inner[1]) for key, item in value.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return value.value
    if isinstance(kind, type) and is_dataclass(kind):
        return {name: to_plain(getattr(value, name), hint) for name, hint in _hints(kind).items()}
    raise TypeError(f"{kind}: no plain form known")


def from_plain(data: Any, hint: type[T]) -> T:
    """The value that `to_plain` made this from; an InputError says what does not fit."""
    return cast(T, _value(data, hint, getattr(hint, "__name__", str(hint))))


def _value(data: Any, hint: Any, where: str) -> Any:
    options = _options(hint)
    if data is None and (NoneType in get_args(hint) or hint in {None, NoneType, Any}):
        return None
    if len(options) > 1:
        return _untagged(data, options, where)
    (kind,) = options
    if kind is Any:
        return data
    try:
        return _one(data, kind, where)
    except InputError:
        raise
    except (TypeError, ValueError, AttributeError, KeyError) as problem:
        raise InputError(f"{where}: {_short(data)} is no {_name(kind)}") from problem


def _one(data: Any, kind: Any, where: str) -> Any:
    if kind in _SCALARS:
        # An int may stand for a float, "inf" too; a boolean is no number.
        if type(data) is not kind and (kind is not float or isinstance(data, bool)):
            raise TypeError
        return kind(data)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in {tuple, frozenset}:
        if not isinstance(data, list):
            raise TypeError
        return origin(
            _value(item, part, f"{where}[{index}]")
            for index, (item, part) in enumerate(zip(data, _parts(inner, len(data)), strict=True))
        )
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: _value(item, inner[1], f"{where}.{key}") for key, item in data.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(data)
    if is_dataclass(kind):
        return _record(data, kind, where)
    raise TypeError(f"{kind}: no plain form known")


def _record(data: Mapping[str, Any], kind: Any, where: str) -> Any:
    hints = _hints(kind)
    known = {f.name: f for f in fields(kind)}
    for name in data:
        if name not in known:
            raise InputError(f"{where}: unknown field '{name}'; it was written by another version")
    for name, field in known.items():
        needed = field.default is MISSING and field.default_factory is MISSING
        if name not in data and needed:
            raise InputError(f"{where}: field '{name}' is missing")
    return kind(**{name: _value(item, hints[name], f"{where}.{name}") for name, item in data.items()})


def _tagged(value: Any, options: Sequence[Any]) -> dict[str, Any]:
    for option in options:
        if type(value) is option:
            return {"kind": option.__name__, **to_plain(value, option)}
    raise TypeError(f"{value!r} is none of {', '.join(map(_name, options))}")


def _untagged(data: Any, options: Sequence[Any], where: str) -> Any:
    kind = data.get("kind") if isinstance(data, Mapping) else None
    for option in options:
        if option.__name__ == kind:
            return _record({name: item for name, item in data.items() if name != "kind"}, option, where)
    raise InputError(f"{where}: kind {kind!r} is none of {', '.join(map(_name, options))}")


def _options(hint: Any) -> list[Any]:
    """What a value of this type may be, None apart."""
    if hint is None:
        return [NoneType]
    if get_origin(hint) in {Union, UnionType}:
        return [option for option in get_args(hint) if option is not NoneType]
    return [hint]


def _parts(inner: tuple[Any, ...], length: int) -> list[Any]:
    return [inner[0]] * length if len(inner) == 1 or inner[-1] is Ellipsis else list(inner)


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _name(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind))


def _short(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 60 else f"{text[:57]}..."
