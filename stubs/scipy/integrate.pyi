from collections.abc import Callable, Sequence

def quad(
    func: Callable[..., float],
    a: float,
    b: float,
    args: tuple[float, ...] = ...,
    *,
    points: Sequence[float] | None = ...,
    limit: int = ...,
) -> tuple[float, float]: ...
