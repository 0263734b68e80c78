"""The coming slots of a simulated application, many at a time.

As long as nothing is changed, what happens in a slot depends on the trace and on the slot before
it only. So compiled code works out a run of slots at once, and whoever plays them reads one after
the other; after a change the rest of them will not happen, and is worked out anew.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from penstock.compiled import Flags, Floats, Ints, compiled, frozen_floats, frozen_ints, read_only
from penstock.direct_calls import machine_code
from penstock.perf.deployments import Deployments
from penstock.perf.operator import fill_utilisations, response_time, utilisation
from penstock.perf.queueing import QueueModel

MOST_AHEAD = 256  # slots at a time
_NO_MORE = -1  # after the last operator of a path


class Station(NamedTuple):
    """One operator, however it is deployed."""

    queue: QueueModel
    deployments: Deployments
    visits: float  # tuples that reach it per tuple of a source
    delay_s: float  # a constant part of its response time


class Deployed(NamedTuple):
    """What stays as it is from one change to the next."""

    handles: tuple[int, ...]  # deployment of each operator
    replicas: tuple[int, ...]  # of each operator
    capacity: float  # tuples/s that the source may let in
    network_s: Floats  # between the replicas of each path
    slow: float = 1.0  # service times are this multiple of what they should be


class Slots(NamedTuple):
    """A run of slots: lists of as many values; per operator where every operator has its own."""

    first: int
    rates: list[float]  # tuples/s of every source
    downtime_s: list[float]
    pause_left_s: list[float]  # that later slots begin with
    waiting: list[float]  # tuples at the source, at the end
    inside: list[float]  # tuples/s let in while running
    times_s: list[list[float]]  # response time of each operator
    loads: list[list[float]]
    busy: list[list[list[float]]]  # load of each replica
    response_time_s: list[float]  # of the latest path
    strictest_s: list[float]  # of the worst path, as if its limit were the tightest
    late: list[bool]  # whether a path was above its limit


@compiled
def buffered(
    rate: float, waiting: float, pause_s: float, slot_s: float, capacity: float, pause_left_s: float = 0.0
) -> tuple[float, float]:
    """A fluid buffer over one slot that begins with a pause: mean wait, and what is left at the end.

    The wait is that of tuples that come in this slot: until the pause is over, and until what came
    before them has been let in. (Little's law would count what came in slots before.)
    """
    running = slot_s - pause_s
    after_pause = waiting + rate * pause_s
    content = (waiting + after_pause) / 2 * pause_s  # integrated over the slot
    draining = capacity - rate
    if draining > 0 and after_pause <= draining * running:
        content += after_pause * (after_pause / draining) / 2
        left = 0.0
    else:
        left = after_pause - draining * running
        content += (after_pause + left) / 2 * running
    return pause_left_s + (pause_s**2 / 2 + content / capacity) / slot_s, left


class _AtTheSource(NamedTuple):
    downtime_s: Floats
    pause_left_s: Floats
    waits_s: Floats
    waiting: Floats
    inside: Floats


@compiled
def _let_in(
    rates: Floats,
    waiting: float,
    pause_s: float,
    slot_s: float,
    capacity: float,
    out: _AtTheSource,
) -> None:
    for slot in range(rates.size):
        rate = rates[slot]
        before, now_s = waiting, min(pause_s, slot_s)
        pause_s -= now_s
        wait, waiting = buffered(rate, before, now_s, slot_s, capacity, pause_s)
        running = slot_s - now_s
        out.downtime_s[slot] = now_s
        out.pause_left_s[slot] = pause_s
        out.waits_s[slot] = wait
        out.waiting[slot] = waiting
        out.inside[slot] = (before + rate * slot_s - waiting) / running if running > 0 else 0.0


class _AtAStation(NamedTuple):
    times_s: Floats
    loads: Floats
    busy: Floats  # slot x replica


@compiled
def _serve(station: Station, handle: int, slow: float, count: int, inside: Floats, out: _AtAStation) -> None:
    queue, space = station.queue, station.deployments
    for slot in range(count):
        # A queue whose service takes f times as long is the same queue on a clock f times as slow.
        arriving = slow * (inside[slot] * station.visits)
        out.times_s[slot] = slow * response_time(queue, space, handle, arriving) + station.delay_s
        out.loads[slot] = utilisation(queue, space, handle, arriving)
        fill_utilisations(queue, space, handle, arriving, out.busy[slot])


class _Paths(NamedTuple):
    operators: Ints  # path x operators, in order
    limits_s: Floats
    tightest_s: float


class _AtTheSink(NamedTuple):
    response_time_s: Floats
    strictest_s: Floats
    late: Flags


@compiled
def _arrive(
    paths: _Paths, network_s: Floats, count: int, waits_s: Floats, times_s: Floats, out: _AtTheSink
) -> None:
    for slot in range(count):
        longest, strictest, late = -np.inf, -np.inf, False
        for path in range(paths.limits_s.size):
            total = 0.0
            for operator in paths.operators[path]:
                if operator != _NO_MORE:
                    total += times_s[operator, slot]
            time_s = waits_s[slot] + total + network_s[path]
            limit_s = paths.limits_s[path]
            longest = max(longest, time_s)
            strictest = max(strictest, time_s * paths.tightest_s / limit_s)
            late = late or time_s > limit_s
        out.response_time_s[slot] = longest
        out.strictest_s[slot] = strictest
        out.late[slot] = late


class SlotsAhead:
    """Works out runs of slots of one application."""

    def __init__(
        self,
        stations: Sequence[Station],
        paths: Sequence[Sequence[int]],  # indices of stations
        limits_s: Sequence[float],  # of each path
        slot_s: float,
    ) -> None:
        longest = max(len(path) for path in paths)
        self._stations = stations
        self._paths = _Paths(
            frozen_ints([[*path, *[_NO_MORE] * (longest - len(path))] for path in paths]),
            frozen_floats(limits_s),
            float(min(limits_s)),
        )
        self._slot_s = slot_s
        # Room to write into, the same for every run.
        self._source = _AtTheSource(*np.empty((5, MOST_AHEAD)))
        self._times_s = np.empty((len(stations), MOST_AHEAD))
        self._at = [
            _AtAStation(
                times_s, np.empty(MOST_AHEAD), np.empty((MOST_AHEAD, station.deployments.max_replicas))
            )
            for station, times_s in zip(stations, self._times_s, strict=True)
        ]
        self._sink = _AtTheSink(
            np.empty(MOST_AHEAD), np.empty(MOST_AHEAD), np.empty(MOST_AHEAD, dtype=np.bool_)
        )
        inside, waits_s = self._source.inside, self._source.waits_s
        self._let_in = machine_code(_let_in, frozen_floats([]), 0.0, 0.0, 0.0, 0.0, self._source)
        self._serve = [
            machine_code(_serve, station, 0, 0.0, 0, inside, at)
            for station, at in zip(stations, self._at, strict=True)
        ]
        self._arrive = machine_code(
            _arrive, self._paths, frozen_floats(limits_s), 0, waits_s, self._times_s, self._sink
        )

    def work_out(
        self, deployed: Deployed, first: int, rates: Floats, *, waiting: float, pause_s: float
    ) -> Slots:
        """Slots from the `first` on with these rates, and with tuples waiting and a pause to begin with."""
        source, sink, count = self._source, self._sink, rates.size
        self._let_in(read_only(rates), waiting, pause_s, self._slot_s, deployed.capacity, source)
        for serve, station, handle, at in zip(
            self._serve, self._stations, deployed.handles, self._at, strict=True
        ):
            serve(station, handle, deployed.slow, count, source.inside, at)
        self._arrive(self._paths, deployed.network_s, count, source.waits_s, self._times_s, sink)
        return Slots(
            first=first,
            rates=rates.tolist(),
            downtime_s=source.downtime_s[:count].tolist(),
            pause_left_s=source.pause_left_s[:count].tolist(),
            waiting=source.waiting[:count].tolist(),
            inside=source.inside[:count].tolist(),
            times_s=self._times_s[:, :count].tolist(),
            loads=[at.loads[:count].tolist() for at in self._at],
            busy=[
                at.busy[:count, :replicas].tolist()
                for at, replicas in zip(self._at, deployed.replicas, strict=True)
            ],
            response_time_s=sink.response_time_s[:count].tolist(),
            strictest_s=sink.strictest_s[:count].tolist(),
            late=sink.late[:count].tolist(),
        )
