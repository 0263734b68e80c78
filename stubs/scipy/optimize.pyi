from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.sparse import Sparse

Floats = npt.NDArray[np.float64]

class OptimizeResult:
    status: int
    x: Floats

def linprog(
    c: Floats,
    A_ub: Floats,
    b_ub: Floats,
    bounds: tuple[float | None, float | None],
) -> OptimizeResult: ...

class Bounds:
    def __init__(self, lb: Floats, ub: Floats) -> None: ...

class LinearConstraint:
    def __init__(self, A: Sparse, lb: Floats, ub: Floats) -> None: ...

class MilpResult:
    status: int
    x: Floats | None
    fun: float | None

def milp(
    c: Floats,
    *,
    integrality: Floats,
    bounds: Bounds,
    constraints: LinearConstraint,
    options: dict[str, float],
) -> MilpResult: ...
def least_squares(
    fun: Callable[[Floats], Floats], x0: Floats, *, jac: Callable[[Floats], Floats] = ..., method: str
) -> OptimizeResult: ...
def curve_fit(
    f: Callable[..., Floats], xdata: Floats, ydata: Floats, p0: Floats, *, method: str
) -> tuple[Floats, Floats]: ...
