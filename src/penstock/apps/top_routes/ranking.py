"""What DEBS 2015 query 1 computes, without Spark: sliding counts of routes, rankings.

Time is the drop-off time of trips, in whole seconds. The counts at time t are over drop-off
times in (t - 30 min, t], so a trip leaves at exactly +30 minutes. Routes are cut into
buckets that know nothing of each other: each counts and ranks its own, and the ten best of
all are among the ten best of each.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

WINDOW_S = 30 * 60
LISTED = 10
NEVER_S = 253_402_300_799  # the end of the year 9999: when an input that has ended goes on


class Trip(NamedTuple):
    """A completed trip, or with `route` 0 a beat: the last trip read of those with its drop-off time."""

    number: int  # position in the input
    entered_s: float  # when it was read, system time
    pickup_s: int
    dropoff_s: int
    route: int


_TRIP = np.dtype(
    [("number", "i8"), ("entered_s", "f8"), ("pickup_s", "i8"), ("dropoff_s", "i8"), ("route", "i8")]
)
Trips = npt.NDArray[np.void]  # of _TRIP: a window has many, and few of them come or go at a time


def trips_array(trips: Sequence[Trip]) -> Trips:
    return np.array(list(trips), dtype=_TRIP)


def _listed(trips: Trips) -> list[Trip]:
    return [Trip(*numbers) for numbers in trips.tolist()]


class Standing(NamedTuple):
    """How often a route was completed in the window, and by which trip last."""

    trips: int
    latest: Trip


class Leaders(NamedTuple):
    """The best routes of one bucket from a time on."""

    at_s: int
    bucket: int
    standings: tuple[Standing, ...]


class NewRanking(NamedTuple):
    """A new list of routes, and the trip that brought it about."""

    cause: Trip
    routes: tuple[int, ...]  # best first


def order(standing: Standing) -> tuple[int, int]:
    """More trips first; among equals, the route that was driven last."""
    return standing.trips, standing.latest.number


def ranked(standings: Iterable[Standing]) -> tuple[Standing, ...]:
    return tuple(nlargest(LISTED, standings, key=order))


def cells_of(route: int) -> tuple[str, str]:
    """Start and end cell of a route number, which is their four components, three digits each."""
    parts = [route // 1000**place % 1000 for place in (3, 2, 1, 0)]
    return f"{parts[0]}.{parts[1]}", f"{parts[2]}.{parts[3]}"


class _Counts:
    """Counts of a window while time passes."""

    def __init__(self, trips: Trips) -> None:
        newest_first = trips[::-1]
        _, latest, counts = np.unique(newest_first["route"], return_index=True, return_counts=True)
        self.of = {
            trip.route: Standing(count, trip)
            for trip, count in zip(_listed(newest_first[latest]), counts.tolist(), strict=True)
        }

    def add(self, trip: Trip) -> None:
        known = self.of.get(trip.route)
        self.of[trip.route] = Standing(known.trips + 1 if known else 1, trip)

    def remove(self, trip: Trip) -> None:
        known = self.of[trip.route]
        if known.trips > 1:
            self.of[trip.route] = known._replace(trips=known.trips - 1)
        else:
            del self.of[trip.route]

    def matters(self, leaders: Sequence[Standing], touched: set[int]) -> bool:
        """Whether the leaders may be others, now that the counts of these routes have changed."""
        if len(leaders) < LISTED or any(leader.latest.route in touched for leader in leaders):
            return True
        last = min(map(order, leaders))
        return any(order(self.of[route]) > last for route in touched if route in self.of)


def leaders_over_time(trips: Trips, since_s: int, until_s: int) -> Iterator[tuple[int, tuple[Standing, ...]]]:
    """At every time from `since_s`, before `until_s`, when other routes lead or their counts change.

    `trips` are in order, and all that have a part in it: those that leave at `since_s` or later.
    """
    dropoff_s = trips["dropoff_s"]
    leaves_s = dropoff_s + WINDOW_S
    counts = _Counts(trips[dropoff_s < since_s])
    arriving = deque(_listed(trips[(dropoff_s >= since_s) & (dropoff_s < until_s)]))
    leaving = deque(_listed(trips[(leaves_s >= since_s) & (leaves_s < until_s)]))
    moments = {trip.dropoff_s for trip in arriving} | {trip.dropoff_s + WINDOW_S for trip in leaving}
    leaders = ranked(counts.of.values())
    for now_s in sorted(moments):
        touched = set()
        while arriving and arriving[0].dropoff_s == now_s:
            trip = arriving.popleft()
            counts.add(trip)
            touched.add(trip.route)
        while leaving and leaving[0].dropoff_s + WINDOW_S == now_s:
            trip = leaving.popleft()
            counts.remove(trip)
            touched.add(trip.route)
        if counts.matters(leaders, touched):
            before, leaders = leaders, ranked(counts.of.values())
            if leaders != before:
                yield now_s, leaders


@dataclass(frozen=True, slots=True, eq=False)
class BucketWindow:
    """What a bucket remembers: its trips of the last 30 minutes, and up to when it has answered."""

    closed_s: int = 0  # everything before has arrived and was answered
    trips: Trips = field(default_factory=lambda: trips_array([]))  # in order

    def advanced(
        self, arrived: Iterable[Trip], times: Iterable[int]
    ) -> tuple["BucketWindow", list[tuple[int, tuple[Standing, ...]]]]:
        """Take in trips; `times` are drop-off times that others have reached.

        The input is sorted, so before the largest of them nothing is missing; trips at that very
        time may still follow, unless the input has ended. A trip behind the others is left out.
        """
        reached = set(times)
        until_s = max((time for time in reached if time != NEVER_S), default=self.closed_s)
        until_s = max(until_s, self.closed_s) + (NEVER_S in reached)
        new = trips_array([trip for trip in arrived if trip.dropoff_s >= self.closed_s])
        trips = np.concatenate([self.trips, new])
        trips = trips[np.lexsort((trips["number"], trips["dropoff_s"]))]
        answers = list(leaders_over_time(trips, self.closed_s, until_s))
        return BucketWindow(until_s, trips[trips["dropoff_s"] + WINDOW_S >= until_s]), answers

    @classmethod
    def from_bytes(cls, closed_s: int, packed: bytes) -> "BucketWindow":
        """With trips as `trips.tobytes()` gave them."""
        return cls(closed_s, np.frombuffer(packed, dtype=_TRIP))


@dataclass(frozen=True, slots=True)
class Board:
    """The ten best of all, from the leaders of every bucket."""

    buckets: Mapping[int, tuple[Standing, ...]] = field(default_factory=dict)
    shown: tuple[int, ...] = ()  # routes last published
    open_beat: Trip | None = None  # trips with its drop-off time may still follow

    def advanced(self, updates: Iterable[Leaders], beats: Iterable[Trip]) -> tuple["Board", list[NewRanking]]:
        """Answer every drop-off time that is complete: all before the last that was reached."""
        still_open = () if self.open_beat is None else (self.open_beat,)
        answered_s = min((beat.dropoff_s for beat in still_open), default=0)
        by_time = {  # the last trip read with each time
            beat.dropoff_s: beat for beat in sorted((*beats, *still_open)) if beat.dropoff_s >= answered_s
        }
        closed_s = max(by_time, default=0)
        waiting = deque(sorted(updates, key=lambda update: (update.at_s, update.bucket)))
        buckets, shown, changes = dict(self.buckets), self.shown, []
        for now_s in sorted(by_time)[:-1]:
            while waiting and waiting[0].at_s <= now_s:
                update = waiting.popleft()
                buckets[update.bucket] = update.standings
            best = ranked(standing for standings in buckets.values() for standing in standings)
            routes = tuple(standing.latest.route for standing in best)
            if routes != shown:
                changes.append(NewRanking(_cause(best, shown, by_time[now_s]), routes))
                shown = routes
        # What is left came to pass before the next drop-off time, which is the open one or later.
        for update in waiting:
            buckets[update.bucket] = update.standings
        return Board(buckets, shown, by_time.get(closed_s)), changes

    def to_json(self) -> str:
        buckets = {bucket: [list(as_numbers(one)) for one in best] for bucket, best in self.buckets.items()}
        return json.dumps({"buckets": buckets, "shown": self.shown, "open_beat": self.open_beat})

    @classmethod
    def from_json(cls, text: str) -> "Board":
        said = json.loads(text)
        beat = said["open_beat"]
        return cls(
            {int(bucket): tuple(map(from_numbers, best)) for bucket, best in said["buckets"].items()},
            tuple(said["shown"]),
            None if beat is None else Trip(*beat),
        )


def as_numbers(standing: Standing) -> tuple[float, ...]:
    return (standing.trips, *standing.latest)


def from_numbers(numbers: Sequence[float]) -> Standing:
    """The inverse of `as_numbers`."""
    trips, number, entered_s, pickup_s, dropoff_s, route = numbers
    return Standing(int(trips), Trip(int(number), entered_s, int(pickup_s), int(dropoff_s), int(route)))


def _cause(best: Sequence[Standing], before: Sequence[int], beat: Trip) -> Trip:
    """The last trip of this time whose route moved on the list; or the one that made time pass."""
    moved = [
        standing.latest
        for place, standing in enumerate(best)
        if standing.latest.dropoff_s == beat.dropoff_s
        and (place >= len(before) or before[place] != standing.latest.route)
    ]
    return max(moved, default=beat)
