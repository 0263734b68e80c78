import numpy as np
import numpy.typing as npt

def gammaincinv(a: float, y: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]: ...
