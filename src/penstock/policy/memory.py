"""What a compiled policy has learned, as named arrays: to be saved, and put back into a fresh memory.

A memory also holds what its policy was given (deployments, costs, parameters) as read-only
arrays that are shared, and recognised, by identity. A copy of a whole memory, say by pickle,
would hold other arrays in their place: it would be compiled again and miss new prices.
"""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from penstock.domain.errors import InputError
from penstock.policy.rl.tables import ValueTable

K = TypeVar("K", bound=tuple[Any, ...] | Mapping[str, Any])  # one policy's memory, or several by name
Learned = dict[str, npt.NDArray[Any]]


def learned(memory: tuple[Any, ...] | Mapping[str, Any]) -> Learned:
    """Copies of the arrays a policy writes to, by the path of field names that leads to each."""
    found: Learned = {}

    def visit(name: str, part: Any) -> None:
        if isinstance(part, np.ndarray) and part.flags.writeable:
            found[name] = part.copy()
        elif isinstance(part, tuple | Mapping):
            for label, field in _fields(part):
                visit(f"{name}.{label}" if name else label, field)

    visit("", memory)
    return found


def with_learned(fresh: K, saved: Mapping[str, npt.NDArray[Any]]) -> K:
    """A fresh memory of the same policy with what was saved."""
    missing = set(learned(fresh)) ^ set(saved)
    if missing:
        raise InputError(f"saved memory: '{sorted(missing)[0]}' does not fit {type(fresh).__name__}")

    def filled(name: str, part: Any, *, grows: bool = False) -> Any:
        if isinstance(part, np.ndarray) and part.flags.writeable:
            return _checked(name, part, saved[name], grows=grows)
        if isinstance(part, Mapping):
            return {
                label: filled(f"{name}.{label}" if name else label, field) for label, field in part.items()
            }
        if isinstance(part, tuple):
            grows = isinstance(part, ValueTable)
            fields = [
                filled(f"{name}.{label}" if name else label, field, grows=grows)
                for label, field in _fields(part)
            ]
            same = all(new is old for new, old in zip(fields, part, strict=True))
            return part if same else type(part)(*fields)
        return part

    return cast(K, filled("", fresh))


def _fields(part: tuple[Any, ...] | Mapping[str, Any]) -> list[tuple[str, Any]]:
    if isinstance(part, Mapping):
        return list(part.items())
    names = getattr(part, "_fields", None) or [str(index) for index in range(len(part))]
    return list(zip(names, part, strict=True))


def _checked(name: str, fresh: npt.NDArray[Any], saved: npt.NDArray[Any], *, grows: bool) -> npt.NDArray[Any]:
    # Hashed tables grow, along their first axis; nothing else may differ: kernels do not check their indices.
    first = 1 if grows else 0
    if saved.dtype != fresh.dtype or saved.ndim != fresh.ndim or saved.shape[first:] != fresh.shape[first:]:
        raise InputError(
            f"saved memory: '{name}' is {saved.dtype}{saved.shape}, not {fresh.dtype}{fresh.shape}: "
            "it was learned with other node types, replicas or levels"
        )
    return np.array(saved, dtype=fresh.dtype, order="C")
