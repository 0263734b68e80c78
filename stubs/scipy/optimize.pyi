import numpy as np
import numpy.typing as npt

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
