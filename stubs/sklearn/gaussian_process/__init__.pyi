from typing import Literal

import numpy as np
import numpy.typing as npt
from sklearn.gaussian_process.kernels import Kernel

Floats = npt.NDArray[np.float64]

class GaussianProcessRegressor:
    def __init__(
        self,
        kernel: Kernel | None = ...,
        *,
        alpha: float = ...,
        optimizer: str | None = ...,
        normalize_y: bool = ...,
    ) -> None: ...
    def fit(self, X: Floats, y: Floats) -> GaussianProcessRegressor: ...
    def log_marginal_likelihood(self, theta: Floats, *, clone_kernel: bool = ...) -> float: ...
    def predict(self, X: Floats, return_std: Literal[True]) -> tuple[Floats, Floats]: ...
