"""Several seeds of one policy as a mean and an interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

# Two-sided 95 % quantiles of Student's t by degrees of freedom; 1.96 beyond.
_STUDENT_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
              2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
              2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over seeds; the half-width of its 95 % interval is None for a single value."""

    mean: float
    half_width: float | None

    def shown(self, decimals: int) -> str:
        spread = "" if not self.half_width else f"±{self.half_width:.{decimals}f}"
        return f"{self.mean:.{decimals}f}{spread}"


def estimate(values: Sequence[float]) -> Estimate:
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(mean, None)
    freedom = len(values) - 1
    quantile = _STUDENT_T[freedom - 1] if freedom <= len(_STUDENT_T) else 1.96
    return Estimate(mean, quantile * float(np.std(values, ddof=1)) / sqrt(len(values)))
