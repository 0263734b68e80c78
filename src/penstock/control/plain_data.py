"""Values as plain data, for JSON, and back: the type hints of our own frozen values say how.

None stays None, infinite numbers become "inf", a value of a union carries its class as
"kind", an array is its packed bytes, a mapping whose keys are not strings a list of pairs.
What was written with fewer fields than a class has now gets their defaults; unknown fields
are an error.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from penstock.domain.errors import InputError

T = TypeVar("T")

_SCALARS = (bool, int, float, str)


def parsed_json(text: str | bytes, object_hook: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """What a JSON text says; an InputError where it is none, however it is broken."""
    try:
        return json.loads(text, object_hook=object_hook)
    except RecursionError:  # of the parser, which follows every bracket
        raise InputError("not JSON that Penstock writes: brackets within brackets without end") from None
    except ValueError as problem:  # no JSON, no UTF-8, a number of thousands of digits
        raise InputError(f"not JSON: {problem}") from problem


def to_plain(value: Any, hint: Any) -> Any:
    """`value`, which has the type `hint`, as dicts, lists, strings, numbers, booleans and None."""
    options = _options(hint)
    if value is None or hint is Any:
        return value
    if len(options) > 1:
        return _scalar(value, options) if _are_scalars(options) else _tagged(value, options)
    (kind,) = options
    if kind is float:
        return float(value) if isfinite(value) else str(float(value))
    if kind in _SCALARS:
        return kind(value)
    return _plain_whole(value, kind)


def _plain_whole(value: Any, kind: Any) -> Any:
    inner = get_args(kind)
    plain: Any
    match _form(kind):
        case Form.TUPLE:
            parts = zip(value, _parts(inner, len(value)), strict=True)
            plain = [to_plain(item, part) for item, part in parts]
        case Form.BARE_TUPLE:
            plain = _bare(value)
        case Form.ARRAY:
            plain = packed(value)
        case Form.MAPPING if inner[0] is str:
            plain = {key: to_plain(item, inner[1]) for key, item in value.items()}
        case Form.MAPPING:  # JSON has no other keys: a list of pairs
            plain = [[to_plain(key, inner[0]), to_plain(item, inner[1])] for key, item in value.items()]
        case Form.ENUM:
            plain = value.value
        case Form.RECORD:
            plain = {name: to_plain(getattr(value, name), hint) for name, hint in _hints(kind).items()}
    return plain


class Form(Enum):
    """How a type is written down; scalars, unions and None are dealt with before."""

    TUPLE = "tuple"
    BARE_TUPLE = "tuple of who knows what"
    ARRAY = "array"
    MAPPING = "mapping"
    ENUM = "enum"
    RECORD = "dataclass or named tuple"


def _form(kind: Any) -> Form:
    origin = get_origin(kind) or kind
    forms = {
        Form.TUPLE: origin is tuple and bool(get_args(kind)),
        Form.BARE_TUPLE: kind is tuple,
        Form.ARRAY: origin is np.ndarray,
        Form.MAPPING: isinstance(origin, type) and issubclass(origin, Mapping) and len(get_args(kind)) == 2,
        Form.ENUM: isinstance(kind, type) and issubclass(kind, Enum),
        Form.RECORD: _is_record(kind),
    }
    for form, fits in forms.items():
        if fits:
            return form
    raise TypeError(f"{kind}: no plain form known")


def from_plain(data: Any, hint: type[T]) -> T:
    """The value that `to_plain` made this from; an InputError says what does not fit."""
    where = getattr(hint, "__name__", str(hint))
    try:
        return cast(T, _value(data, hint, where))
    except RecursionError:
        raise InputError(f"{where}: lists within lists without end") from None


def _value(data: Any, hint: Any, where: str) -> Any:
    options = _options(hint)
    if data is None and (NoneType in get_args(hint) or hint in {None, NoneType, Any}):
        return None
    if len(options) > 1:
        return _scalar(data, options) if _are_scalars(options) else _untagged(data, options, where)
    (kind,) = options
    if kind is Any:
        return data
    try:
        return _one(data, kind, where)
    except InputError:
        raise
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError) as problem:
        raise InputError(f"{where}: {_short(data)} is not a {_name(kind)}") from problem


def _one(data: Any, kind: Any, where: str) -> Any:
    if kind in _SCALARS:
        # An int may stand for a float, "inf" too; a boolean is not a number.
        if type(data) is not kind and (kind is not float or isinstance(data, bool)):
            raise TypeError
        return kind(data)
    inner = get_args(kind)
    value: Any
    match _form(kind):
        case Form.TUPLE:
            if not isinstance(data, list):
                raise TypeError
            parts = enumerate(zip(data, _parts(inner, len(data)), strict=True))
            value = tuple(_value(item, part, f"{where}[{index}]") for index, (item, part) in parts)
        case Form.BARE_TUPLE:
            value = _tuples(data)
        case Form.ARRAY:
            value = unpacked(data)
        case Form.MAPPING if inner[0] is str:
            value = {key: _value(item, inner[1], f"{where}.{key}") for key, item in data.items()}
        case Form.MAPPING:
            pairs = [(_value(key, inner[0], where), item) for key, item in data]
            value = {key: _value(item, inner[1], f"{where}.{key}") for key, item in pairs}
        case Form.ENUM:
            value = kind(data)
        case Form.RECORD:
            value = _record(data, kind, where)
    return value


def _record(data: Mapping[str, Any], kind: Any, where: str) -> Any:
    hints = _hints(kind)
    for name in data:
        if name not in hints:
            raise InputError(f"{where}: unknown field '{name}'; it was written by another version")
    for name in hints:
        if name not in data and name not in _optional(kind):
            raise InputError(f"{where}: field '{name}' is missing")
    return kind(**{name: _value(item, hints[name], f"{where}.{name}") for name, item in data.items()})


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_field_defaults"))


@cache
def _optional(kind: type[Any]) -> frozenset[str]:
    if not is_dataclass(kind):
        return frozenset(getattr(kind, "_field_defaults", ()))
    return frozenset(
        f.name for f in fields(kind) if f.default is not MISSING or f.default_factory is not MISSING
    )


def packed(array: npt.NDArray[Any]) -> dict[str, Any]:
    """An array as text: its bytes, compressed, with type and shape."""
    kept = np.ascontiguousarray(array)
    return {
        "dtype": kept.dtype.str,
        "shape": list(array.shape),
        "bytes": b64encode(zlib.compress(kept.tobytes())).decode("ascii"),
    }


def unpacked(data: Mapping[str, Any]) -> npt.NDArray[Any]:
    try:
        content = zlib.decompress(b64decode(data["bytes"], validate=True))
        flat = np.frombuffer(content, dtype=np.dtype(data["dtype"]))
        return flat.reshape(data["shape"]).copy()
    except (KeyError, TypeError, ValueError, zlib.error) as problem:
        raise InputError(f"packed array: {problem}") from problem


def _bare(value: Any) -> Any:
    """A tuple without a more exact type: of scalars, None and tuples only, or it could not be read back."""
    if type(value) is tuple:
        return [_bare(item) for item in value]
    if type(value) is float and not isfinite(value):
        return {"float": str(value)}
    if value is None or type(value) in _SCALARS:
        return value
    raise TypeError(f"{type(value).__name__} in a tuple without exact types: no plain form known")


def _tuples(data: Any) -> Any:
    if isinstance(data, list):
        return tuple(_tuples(item) for item in data)
    return float(data["float"]) if isinstance(data, dict) else data


def _are_scalars(options: Sequence[Any]) -> bool:
    return all(option in _SCALARS for option in options)


def _scalar(value: Any, options: Sequence[Any]) -> Any:
    """One of several scalars; JSON tells them apart by itself."""
    if type(value) not in options or (type(value) is float and not isfinite(value)):
        raise InputError(f"{_short(value)} is not one of {', '.join(map(_name, options))}")
    return value


def _tagged(value: Any, options: Sequence[Any]) -> dict[str, Any]:
    for option in options:
        if type(value) is option:
            return {"kind": option.__name__, **to_plain(value, option)}
    raise TypeError(f"{value!r} is not one of {', '.join(map(_name, options))}")


def _untagged(data: Any, options: Sequence[Any], where: str) -> Any:
    kind = data.get("kind") if isinstance(data, Mapping) else None
    for option in options:
        if option.__name__ == kind:
            return _record({name: item for name, item in data.items() if name != "kind"}, option, where)
    raise InputError(f"{where}: kind {kind!r} is not one of {', '.join(map(_name, options))}")


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
