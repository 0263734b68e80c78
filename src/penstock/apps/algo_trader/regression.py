"""Polynomials through windows of quotes, compiled: every window that is due in one call.

De Matteis 2017 fits them by Levenberg-Marquardt. A polynomial is linear in its coefficients, so the
least-squares solution can be written down, and iterating leads to the same one. Here it is built from
polynomials that are orthogonal over the points of the window (Forsythe 1957): no system of equations,
hence none that is ill-conditioned, however the times are spread.
"""

import numpy as np

from penstock.compiled import Floats, Ints, compiled

# Mean square of the next orthogonal polynomial, over times from -1 to 1, below which the times of the
# window cannot tell it from rounding: one quote years from the others makes the window all but two points.
_NEGLIGIBLE = 1e-20


@compiled
def estimate_windows(
    interval: Ints,
    price: Floats,
    ends: Ints,
    targets: Ints,
    window: int,
    degree: int,
    scratch: Floats,
    points: Ints,
    estimates: Floats,
    errors: Floats,
) -> None:
    """Fit the windows that end before quotes `ends`, and estimate the price in the intervals `targets`.

    `interval` is the resolution interval of every quote and never falls. Into `points` goes how many
    intervals a window has, into `errors` the root of the mean square by which the fit misses them.
    `scratch` has four rows as long as a window.
    """
    time, left, now, before = 0, 1, 2, 3  # rows of `scratch`
    for nth in range(ends.size):
        end = ends[nth]
        begin = max(end - window, 0)
        first = interval[begin]
        # Aggregation: the mean of every resolution interval.
        count = 0
        place = begin
        while place < end:
            same = place
            total = 0.0
            while same < end and interval[same] == interval[place]:
                total += price[same]
                same += 1
            scratch[time, count] = interval[place] - first
            scratch[left, count] = total / (same - place)
            count += 1
            place = same
        # Regression, with the window's times from -1 to 1.
        span = interval[end - 1] - first
        scale = 2.0 / span if span > 0 else 1.0
        for at in range(count):
            scratch[time, at] = scratch[time, at] * scale - 1.0
            scratch[now, at] = 1.0
            scratch[before, at] = 0.0
        target = (targets[nth] - first) * scale - 1.0
        estimate, there, there_before, norm_before = 0.0, 1.0, 0.0, 1.0
        for power in range(min(degree, count - 1) + 1):
            norm, shift, cross = 0.0, 0.0, 0.0
            for at in range(count):
                square = scratch[now, at] * scratch[now, at]
                norm += square
                shift += scratch[time, at] * square
                cross += scratch[left, at] * scratch[now, at]
            if norm <= count * _NEGLIGIBLE:
                break
            weight, alpha = cross / norm, shift / norm
            beta = norm / norm_before if power > 0 else 0.0
            for at in range(count):
                scratch[left, at] -= weight * scratch[now, at]
                following = (scratch[time, at] - alpha) * scratch[now, at] - beta * scratch[before, at]
                scratch[before, at] = scratch[now, at]
                scratch[now, at] = following
            estimate += weight * there
            there, there_before = (target - alpha) * there - beta * there_before, there
            norm_before = norm
        missed = 0.0
        for at in range(count):
            missed += scratch[left, at] * scratch[left, at]
        points[nth] = count
        estimates[nth] = estimate
        errors[nth] = np.sqrt(missed / count)
