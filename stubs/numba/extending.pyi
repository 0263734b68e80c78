from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])

def intrinsic(function: F) -> F: ...
def overload(stub: Callable[..., object]) -> Callable[[F], F]: ...
