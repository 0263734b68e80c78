import numpy as np
import numpy.typing as npt

class Sparse: ...

def csr_array(
    entries: tuple[npt.NDArray[np.float64], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]],
    shape: tuple[int, int],
) -> Sparse: ...
