"""Compiled functions without numba's front door, for many calls with the same kinds of arguments.

At every call numba looks up the type of every argument, and opens a random generator by half
a dozen questions to Python. A decision of Q-learning over post-decision states, whose memory
has thirty arrays, takes 32 µs that way and 1 µs this way; the arithmetic is the same. In
return nobody checks the arguments any more: types must stay what they were.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numpy.random import Generator

from penstock.compiled import compiled_allocating, overload

P = ParamSpec("P")
R = TypeVar("R")

_MOST_WORDS = 16  # that an opened generator takes up; 9 with numba 0.68


def machine_code(function: Callable[P, R], *examples: Any) -> Callable[P, R]:
    """A compiled function as it is for arguments of these types, and for no others."""
    import numba

    code = cast(Any, function).dispatcher.compile(tuple(numba.typeof(example) for example in examples))
    return cast(Callable[P, R], code)


class OpenGenerator:
    """A generator that compiled code finds at `address`, as long as this lives."""

    __slots__ = ("_room", "address", "rng")

    def __init__(self, rng: Generator) -> None:
        self.rng = rng
        self._room = np.zeros(_MOST_WORDS, dtype=np.int64)
        self.address = int(self._room.ctypes.data)
        _open(rng, self.address)


def generator_at(address: int) -> Generator:
    """The generator that was opened there. Only compiled code can look."""
    raise NotImplementedError


@overload(generator_at)
def _generator_at(address: Any) -> Callable[[Any], Any]:
    load, _ = _intrinsics()

    def same_signature(address: Any) -> Any:
        return load(address)

    return same_signature


def _leave_at(rng: Generator, address: int) -> None:
    raise NotImplementedError


@overload(_leave_at)
def _generator_left_at(rng: Any, address: Any) -> Callable[[Any, Any], None]:
    _, store = _intrinsics()

    def same_signature(rng: Any, address: Any) -> None:
        store(rng, address)

    return same_signature


@compiled_allocating
def _open(rng: Generator, address: int) -> None:
    _leave_at(rng, address)


@cache
def _intrinsics() -> tuple[Any, Any]:
    """What numba makes of a generator, read from and written to memory."""
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    kind = types.npy_rng

    def place(context: Any, builder: Any, address: Any) -> Any:
        return builder.inttoptr(address, context.get_value_type(kind).as_pointer())

    @intrinsic
    def load(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load(place(context, builder, args[0]))

        return kind(types.int64), generate

    @intrinsic
    def store(typing: Any, rng: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if context.get_abi_sizeof(context.get_value_type(kind)) > 8 * _MOST_WORDS:
                raise RuntimeError(f"an opened generator no longer fits into {_MOST_WORDS} words")
            opened = cgutils.create_struct_proxy(kind)(context, builder, value=args[0])
            # `OpenGenerator` keeps the generator alive: numba is to count no references to it.
            opened.meminfo = opened.meminfo.type(None)
            builder.store(opened._getvalue(), place(context, builder, args[1]))
            return context.get_dummy_value()

        return types.none(kind, types.int64), generate

    return load, store
