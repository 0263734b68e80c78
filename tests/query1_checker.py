"""Whether a list of top routes is right: DEBS 2015 query 1 by brute force, from its text alone.

Shares no code with the application. Every window is counted anew from all trips.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from math import floor, isfinite
from typing import NamedTuple

Route = tuple[str, str]


class CheckedTrip(NamedTuple):
    pickup: datetime
    dropoff: datetime
    route: Route | None  # None: it starts or ends outside the grid


def _cell(longitude: float, latitude: float) -> str | None:
    east = 1 + floor((longitude + 74.913585) / 0.005986 + 0.5)
    south = 1 + floor((41.474937 - latitude) / 0.004491556 + 0.5)
    return f"{east}.{south}" if 1 <= east <= 300 and 1 <= south <= 300 else None


def read_trip(line: str) -> CheckedTrip | None:
    fields = line.split(",")
    if len(fields) != 17:
        return None
    try:
        pickup, dropoff = (datetime.strptime(text, "%Y-%m-%d %H:%M:%S") for text in fields[2:4])
        places = [float(text) for text in fields[6:10]]
    except ValueError:
        return None
    if not all(map(isfinite, places)):
        return None
    start, end = _cell(places[0], places[1]), _cell(places[2], places[3])
    return CheckedTrip(pickup, dropoff, None if start is None or end is None else (start, end))


def window_counts(trips: Sequence[CheckedTrip], now: datetime) -> Counter[Route]:
    begin = now - timedelta(minutes=30)
    return Counter(trip.route for trip in trips if trip.route is not None and begin < trip.dropoff <= now)


def problems(lines: Sequence[str], output: Sequence[str]) -> list[str]:
    """What is wrong with an output for this input; nothing when it is right at every drop-off time."""
    trips = [trip for line in lines if (trip := read_trip(line)) is not None]
    known = {(trip.pickup, trip.dropoff) for trip in trips}
    found: list[str] = []
    shown: list[tuple[datetime, list[Route]]] = []
    for number, row in enumerate(output, start=1):
        fields = row.split(",")
        if len(fields) != 23:
            found.append(f"row {number}: {len(fields)} fields")
            continue
        pickup, dropoff = (datetime.strptime(text, "%Y-%m-%d %H:%M:%S") for text in fields[:2])
        pairs = list(zip(fields[2:22:2], fields[3:22:2], strict=True))
        routes = [pair for pair in pairs if pair != ("NULL", "NULL")]
        if (pickup, dropoff) not in known:
            found.append(f"row {number}: no trip from {pickup} to {dropoff}")
        if pairs[: len(routes)] != routes or len(set(routes)) != len(routes):
            found.append(f"row {number}: a gap or a route twice")
        if shown and dropoff < shown[-1][0]:
            found.append(f"row {number}: goes back in time")
        if routes == (shown[-1][1] if shown else []):
            found.append(f"row {number}: nothing changed")
        if float(fields[22]) < 0:
            found.append(f"row {number}: delay {fields[22]}")
        shown.append((dropoff, routes))
    for now in sorted({trip.dropoff for trip in trips}):
        counts = window_counts(trips, now)
        current = next((routes for dropoff, routes in reversed(shown) if dropoff <= now), [])
        ours = [counts[route] for route in current]
        right = [count for _, count in counts.most_common(10)]
        if ours != right:
            found.append(f"{now}: listed routes were driven {ours} times, the most driven {right} times")
    return found


def trip_line(pickup: datetime, dropoff: datetime, start: tuple[int, int], end: tuple[int, int]) -> str:
    """A line of the input, from the centre of one cell to the centre of another."""
    places = [
        f"{place:.6f}"
        for east, south in (start, end)
        for place in (-74.913585 + (east - 1) * 0.005986, 41.474937 - (south - 1) * 0.004491556)
    ]
    times = [f"{time:%Y-%m-%d %H:%M:%S}" for time in (pickup, dropoff)]
    rest = ["CSH", "3.50", "0.50", "0.50", "0.00", "0.00", "4.50"]
    return ",".join(["medallion", "license", *times, "60", "0.4", *places, *rest])
