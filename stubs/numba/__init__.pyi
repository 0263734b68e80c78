"""The few names Penstock takes from numba, which ships no types."""

from collections.abc import Callable
from typing import Any

from numba import config as config
from numba import types as types

__version__: str

def typeof(value: object) -> Any: ...
def njit(
    *, cache: bool = ..., nogil: bool = ..., forceinline: bool = ..., _nrt: bool = ...
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
