"""Trips as lines of text: recorded ones with surrogates, or generated ones; trip number n, for any n."""

import calendar
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from penstock.apps.feeding.schedule import Schedule
from penstock.apps.top_routes.query import END_LINE
from penstock.data.debs_grid import CELL_EAST, CELL_SOUTH, FIRST_LATITUDE, FIRST_LONGITUDE
from penstock.domain.errors import InputError

if TYPE_CHECKING:
    from pyarrow import Table

Floats = npt.NDArray[np.float64]

_TIME = "%Y-%m-%d %H:%M:%S"
_FIELDS = 17
_NEIGHBOURS = 500  # a surrogate takes its route from a trip this near, before or after


class Lines:
    """Trips as lines of text, for top-routes."""

    total: int | None = None

    def line(self, number: int) -> str:
        raise NotImplementedError

    def table(self, first: int, count: int, *, entered_s: float) -> "Table":
        return _lines_table(first, [self.line(first + place) for place in range(count)], entered_s)

    def end(self, number: int, *, entered_s: float) -> "Table":
        return _lines_table(number, [END_LINE], entered_s)


class RecordedTrips(Lines):
    """Trips of a file, and with an amplification of k, k - 1 surrogates after each.

    A surrogate has the times of the trip it follows and the route of a trip nearby in the
    file: as many trips more at any time, and the same routes as often among them.
    """

    def __init__(self, lines: Sequence[str], *, amplification: int = 1, seed: int = 0) -> None:
        if amplification < 1:
            raise InputError(f"amplification {amplification}: it must be 1 or more")
        self._lines, self._amplification, self._seed = lines, amplification, seed
        self._times = _dropoff_times(lines)
        self.total: int | None = len(lines) * amplification

    @classmethod
    def read(cls, path: Path, *, amplification: int = 1, seed: int = 0) -> "RecordedTrips":
        """The trips of a file, which is sorted by drop-off time; it is held in memory."""
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as problem:
            raise InputError(f"{path}: cannot read: {problem.strerror or problem}") from problem
        trips = cls(lines, amplification=amplification, seed=seed)
        for number, (before, after) in enumerate(pairwise(trips._times.tolist()), start=2):
            if after < before:
                raise InputError(
                    f"{path}: line {number}: dropped off before the trip of the line above; "
                    "sort the file by drop-off time, its fourth field"
                )
        return trips

    @property
    def times_s(self) -> Floats:
        """Drop-off times of all tuples; a line that is not a trip has that of the line before."""
        return np.repeat(self._times, self._amplification)

    def line(self, number: int) -> str:
        place, copy = divmod(number, self._amplification)
        original = self._lines[place]
        if copy == 0:
            return original
        rng = np.random.default_rng((self._seed, number))
        first, last = max(place - _NEIGHBOURS, 0), min(place + _NEIGHBOURS, len(self._lines) - 1)
        donor = self._lines[int(rng.integers(first, last, endpoint=True))].split(",")
        fields = original.split(",")
        if len(fields) != _FIELDS or len(donor) != _FIELDS:
            return original
        return ",".join([f"surrogate{number}", *fields[1:6], *donor[6:10], *fields[10:]])


class GeneratedTrips(Lines):
    """Trips that never were: some routes are far more frequent than others (Zipf), in midtown Manhattan.

    Drop-off times follow the schedule by which they are sent, `acceleration` times as fast.
    """

    _SIDE = 12  # cells; midtown is around 156.160
    _FIRST = (150, 155)

    def __init__(self, schedule: Schedule, *, acceleration: float = 1.0, seed: int = 0) -> None:
        if not acceleration > 0:
            raise InputError(f"acceleration {acceleration}: it must be positive")
        self._schedule, self._acceleration, self._seed = schedule, acceleration, seed
        self._begin_s = calendar.timegm((2013, 1, 1, 0, 0, 0))
        self._routes = np.random.default_rng(seed).permutation(self._SIDE**4)

    def line(self, number: int) -> str:
        rng = np.random.default_rng((self._seed, number))
        rank = min(int(rng.zipf(1.3)), self._routes.size)
        cells = np.unravel_index(int(self._routes[rank - 1]), (self._SIDE,) * 4)
        dropoff_s = self._begin_s + int(self._schedule.moment(number) * self._acceleration)
        takes_s = int(rng.integers(120, 1800))
        places = [
            f"{place:.6f}"
            for east, south in (cells[:2], cells[2:])
            for place in (
                FIRST_LONGITUDE + (self._FIRST[0] + int(east) - 1) * CELL_EAST,
                FIRST_LATITUDE - (self._FIRST[1] + int(south) - 1) * CELL_SOUTH,
            )
        ]
        times = [time.strftime(_TIME, time.gmtime(at_s)) for at_s in (dropoff_s - takes_s, dropoff_s)]
        fare = ["CSH", "10.00", "0.50", "0.50", "0.00", "0.00", "11.00"]
        return ",".join([f"generated{number}", "penstock", *times, str(takes_s), "2.00", *places, *fare])


def _lines_table(first: int, lines: list[str], entered_s: float) -> "Table":
    import pyarrow

    return pyarrow.table(
        {
            "number": np.arange(first, first + len(lines)),
            "entered_s": np.full(len(lines), entered_s),
            "line": pyarrow.array(lines, pyarrow.string()),
        }
    )


def _dropoff_times(lines: Sequence[str]) -> Floats:
    times, last = [], None
    for line in lines:
        fields = line.split(",", 4)
        with suppress(IndexError, ValueError):
            last = float(calendar.timegm(time.strptime(fields[3], _TIME)))
        times.append(last)
    first = next((at for at in times if at is not None), 0.0)
    return np.array([first if at is None else at for at in times], dtype=np.float64)
