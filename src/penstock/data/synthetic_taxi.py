"""A year of taxi trips per minute, made up: the published Taxi trace's statistics, none of its slots.

The published trace counts New York's trips of 2013, minute by minute. Its difference from
one minute to the next has twice the mean for its variance at every level: trips are a
Poisson process, and only its intensity has to be made up. That is a week of hourly means,
times noise that remembers the hour before and the same hour of the day before, and a burst
now and then.
"""

import numpy as np

from penstock.compiled import Floats
from penstock.data.noise import bursts, interpolated, seasonal_noise
from penstock.domain.trace import Trace

# Mean trips per minute of every hour of a week that begins on a Tuesday, as 2013 did.
WEEK: tuple[tuple[int, ...], ...] = (
    (101, 68, 56, 66, 143, 265, 358, 402, 392, 377, 385, 372,
     391, 387, 340, 363, 450, 500, 506, 500, 474, 402, 300, 198),
    (124, 77, 58, 62, 141, 270, 368, 416, 405, 390, 397, 384,
     396, 384, 335, 355, 442, 506, 513, 514, 494, 439, 342, 230),
    (148, 92, 69, 67, 142, 265, 360, 411, 406, 390, 394, 381,
     393, 380, 331, 350, 436, 497, 519, 526, 516, 489, 423, 312),
    (216, 141, 101, 83, 145, 253, 345, 397, 399, 389, 391, 377,
     391, 379, 333, 352, 438, 500, 513, 513, 514, 515, 500, 456),
    (390, 303, 222, 127, 104, 112, 158, 224, 285, 337, 377, 397,
     398, 400, 365, 372, 433, 473, 475, 477, 487, 507, 507, 484),
    (424, 344, 256, 146, 106, 96, 125, 180, 253, 314, 359, 378,
     385, 373, 348, 353, 387, 391, 375, 346, 320, 276, 219, 152),
    (103, 65, 55, 65, 139, 248, 331, 376, 363, 352, 358, 348,
     366, 370, 338, 368, 442, 475, 459, 439, 397, 324, 244, 157),
)  # fmt: skip
HOUR_BEFORE, DAY_BEFORE = 0.75, 0.67  # how much of the noise is left after an hour, after a day
# Busy hours are a little busier, as many taxis as there are; quiet ones (holidays, storms) much quieter.
UP, DOWN = 0.115, 0.27  # deviation of the noise either way, relative to the intensity
BURSTS_A_DAY = 1 / 25


def taxi_rates(*, slots: int, seed: int) -> Trace:
    """Trips per minute, read as tuples per second, as the published trace is."""
    noise_rng, burst_rng, count_rng = np.random.default_rng(seed).spawn(3)
    hours = slots // 60 + 2
    week = np.array(WEEK, dtype=np.float64).ravel()
    noise = seasonal_noise(noise_rng, hours, season=24, before=HOUR_BEFORE, season_before=DAY_BEFORE)
    swing = np.where(noise > 0, UP, DOWN) * noise
    mean_swing = (UP - DOWN) / np.sqrt(2 * np.pi)
    hourly = week[np.arange(hours) % week.size] * np.maximum(1 + swing - mean_swing, 0.02)
    intensity = interpolated(hourly, slots, width=60)
    intensity *= 1 + bursts(burst_rng, slots, per_day=BURSTS_A_DAY, height=(0.1, 0.9), fading_slots=15)
    counts: Floats = count_rng.poisson(intensity).astype(np.float64)
    return Trace("taxi-synthetic", counts)
