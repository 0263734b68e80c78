from typing import Any

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[np.float64]

class MLPRegressor:
    coefs_: list[_Array]
    intercepts_: list[_Array]
    def __init__(self, **settings: Any) -> None: ...
    def partial_fit(self, X: _Array, y: _Array) -> MLPRegressor: ...
    def predict(self, X: _Array) -> _Array: ...
