"""The few names Penstock takes from numba, which ships no types."""

from collections.abc import Callable
from typing import Any

from numba import config as config

__version__: str

def njit(
    *, cache: bool = ..., nogil: bool = ..., forceinline: bool = ..., _nrt: bool = ...
) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def typeof(value: object) -> object: ...
