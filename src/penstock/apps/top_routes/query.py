"""DEBS 2015 query 1 as an application: the ten most frequent routes of the last 30 minutes.

The graph of Cardellini 2018, Fig. 4, in three queries:

    trips > parser > metronome > filterByCoordinates > computeRouteID      no state, fused
          > countByWindow > partialRank                                    one window per bucket of routes
          > globalRank                                                     one list

Time passes by drop-off times: the input is sorted by them. `metronome` tells every bucket
how far the input has come, and `globalRank` every drop-off time at which an answer is due,
also those of trips outside the grid. Every query reads whole batches in order, so when a
time has been reached, all before it is complete; trips of that very time may follow in the
next micro-batch, or not until the end marker.

`parser` leaves out lines that are not trips.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.apps.top_routes.ranking import (
    LISTED,
    NEVER_S,
    Board,
    BucketWindow,
    Leaders,
    Standing,
    Trip,
    as_numbers,
    cells_of,
    from_numbers,
    order,
)
from penstock.data.debs_grid import CELL_EAST, CELL_SOUTH, CELLS, FIRST_LATITUDE, FIRST_LONGITUDE
from penstock.domain.objective import Objective
from penstock.files import write_whole
from penstock.reconfigure.method import Method
from penstock.runtimes.spark.stream_log import StreamLog
from penstock.runtimes.spark.topology import App

if TYPE_CHECKING:
    from pandas import DataFrame as Frame
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

SOURCE = "trips"
SOURCE_SCHEMA = "number long, entered_s double, line string"
RESULTS = "globalRank"
END_LINE = "#end-of-input"  # the last line of a finite input: nothing follows
BUCKETS = 24
CLOCK = -1  # the bucket of the beats, which holds no routes
TRIP, BEAT, LATEST = "trip", "beat", "latest"  # kinds of rows that metronome sends

_TRIP_SCHEMA = "number long, entered_s double, pickup_s long, dropoff_s long"
_CELL_INPUT = (
    "pickup_longitude double, pickup_latitude double, dropoff_longitude double, dropoff_latitude double"
)
_STANDING_COLUMNS = ("counts", "numbers", "entered_s", "pickup_s", "dropoff_s", "routes")
_LEADERS_SCHEMA = (
    "at_s long, bucket int, counts array<long>, numbers array<long>, entered_s array<double>, "
    "pickup_s array<long>, dropoff_s array<long>, routes array<long>"
)
_CHANGE_SCHEMA = "pickup_s long, dropoff_s long, entered_s double, routes array<long>"


def top_routes(
    *, objective: Objective | None = None, max_replicas: int = 3, protocol: Method = Method.LIVE
) -> App:
    """The application; only globalRank cannot be replicated."""
    app = App("top-routes", objective=objective or Objective(response_time_s=3))
    stream = app.source(SOURCE, schema=SOURCE_SCHEMA)
    for name, transform, fused in (
        ("parser", parser, False),
        ("metronome", metronome, True),
        ("filterByCoordinates", filter_by_coordinates, True),
        ("computeRouteID", compute_route_id, True),
    ):
        stream = app.operator(
            name, transform, stream, max_replicas=max_replicas, fused=fused, protocol=protocol
        )
    stream = app.operator(
        "countByWindow", count_by_window, stream, max_replicas=max_replicas, stateful=True, protocol=protocol
    )
    stream = app.operator("partialRank", partial_rank, stream, max_replicas=max_replicas, fused=True)
    stream = app.operator(RESULTS, global_rank, stream, max_replicas=1, stateful=True)
    app.sink("ranking", stream)
    return app


def parser(trips: "DataFrame") -> "DataFrame":
    """trips(number, entered_s, line) -> parsed(number, entered_s, pickup_s, dropoff_s, four coordinates).

    Times are seconds of a calendar without time zones. The end marker is a row at `NEVER_S`.
    """
    coordinates = [column.split()[0] for column in _CELL_INPUT.split(", ")]
    fields = trips.selectExpr("number", "entered_s", "line", "split(line, ',') AS field")
    parsed = fields.selectExpr(
        "number",
        "entered_s",
        *(
            f"IF(line = '{END_LINE}', {NEVER_S}L, {_seconds(f'get(field, {place})')}) AS {name}"
            for place, name in ((2, "pickup_s"), (3, "dropoff_s"))
        ),
        *(f"try_cast(get(field, {6 + place}) AS double) AS {name}" for place, name in enumerate(coordinates)),
        "size(field) AS fields",
    )
    # Comparing a text that is not a finite number gives false, or null.
    numbers = " AND ".join(f"abs({name}) <= 1e6D" for name in coordinates)
    return parsed.where(
        f"dropoff_s = {NEVER_S} OR "
        f"(fields = 17 AND pickup_s IS NOT NULL AND dropoff_s < {NEVER_S} AND {numbers})"
    ).drop("fields")


def metronome(parsed: "DataFrame") -> "DataFrame":
    """parsed -> timed(kind string, parsed columns): the trips, and beats as the time of the input passes.

    After the trips of a partition come a beat per drop-off time and the latest of them again.
    """
    kinds = parsed.selectExpr(f"IF(dropoff_s = {NEVER_S}, '{BEAT}', '{TRIP}') AS kind", "*")
    return kinds.mapInArrow(with_beats, f"kind string, {_TRIP_SCHEMA}, {_CELL_INPUT}")


def filter_by_coordinates(timed: "DataFrame") -> "DataFrame":
    """timed -> inside(timed columns): without trips that start or end outside the grid."""
    ends = [
        f"{_east(f'{end}_longitude')} BETWEEN 1 AND {CELLS} AND "
        f"{_south(f'{end}_latitude')} BETWEEN 1 AND {CELLS}"
        for end in ("pickup", "dropoff")
    ]
    return timed.where(f"kind != '{TRIP}' OR ({' AND '.join(ends)})")


def compute_route_id(inside: "DataFrame") -> "DataFrame":
    """inside -> routed(bucket int, kind string, number, entered_s, pickup_s, dropoff_s, route long).

    A trip goes to the bucket of its route, a beat to the clock, the latest beat to all.
    """
    cells = (
        _east("pickup_longitude"),
        _south("pickup_latitude"),
        _east("dropoff_longitude"),
        _south("dropoff_latitude"),
    )
    number = " + ".join(f"{cell} * {1000**place}L" for cell, place in zip(cells, (3, 2, 1, 0), strict=True))
    trip = ("number", "entered_s", "pickup_s", "dropoff_s")
    routes = inside.selectExpr("kind", *trip, f"IF(kind = '{TRIP}', {number}, 0L) AS route")
    return routes.selectExpr(
        f"explode(CASE kind WHEN '{TRIP}' THEN array(CAST(pmod(hash(route), {BUCKETS}) AS int)) "
        f"WHEN '{BEAT}' THEN array({CLOCK}) ELSE sequence(0, {BUCKETS - 1}) END) AS bucket",
        "kind",
        *trip,
        "route",
    )


def count_by_window(routed: "DataFrame") -> "DataFrame":
    """routed -> leaders(at_s long, bucket int, arrays of standings): a bucket's best when they change.

    Not yet in order; beats pass through, as the only standing of the clock.
    """
    return routed.groupBy("bucket").applyInPandasWithState(
        _count, _LEADERS_SCHEMA, "closed_s long, trips binary", "append", "NoTimeout"
    )


def partial_rank(leaders: "DataFrame") -> "DataFrame":
    """leaders -> partial(same columns): the standings of every row in order, best first."""
    return leaders.mapInArrow(in_order, _LEADERS_SCHEMA)


def global_rank(partial: "DataFrame") -> "DataFrame":
    """partial -> ranking(pickup_s long, dropoff_s long, entered_s double, routes array<long>)."""
    return (
        partial.selectExpr("*", "0 AS all")
        .groupBy("all")
        .applyInPandasWithState(_merge, _CHANGE_SCHEMA, "board string", "append", "NoTimeout")
    )


def _seconds(text: str) -> str:
    """SQL: seconds since 1970 of a date and time as the challenge writes them, or null."""
    return (
        rf"IF({text} RLIKE '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}$', "
        f"timestampdiff(SECOND, TIMESTAMP_NTZ'1970-01-01 00:00:00', try_cast({text} AS timestamp_ntz)), NULL)"
    )


def _east(longitude: str) -> str:
    return f"(1L + floor(({longitude} - {FIRST_LONGITUDE}D) / {CELL_EAST}D + 0.5D))"


def _south(latitude: str) -> str:
    return f"(1L + floor(({FIRST_LATITUDE}D - {latitude}) / {CELL_SOUTH}D + 0.5D))"


def with_beats(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
    """One partition of trips as it is, and after them the last trip of every drop-off time as beats."""
    import pyarrow

    last: dict[int, RecordBatch] = {}
    for batch in batches:
        yield batch
        places = {time: place for place, time in enumerate(batch.column("dropoff_s").to_pylist())}
        last |= {time: batch.slice(place, 1) for time, place in places.items()}
    # The end marker is a beat already; the buckets hear of it, and of the last time before it.
    reached = [time for time in last if time != NEVER_S]
    kinds = [(BEAT, time) for time in reached] + [
        (LATEST, time) for time in (max(reached, default=None), NEVER_S) if time in last
    ]
    rows = [{**last[time].to_pylist()[0], "kind": kind} for kind, time in kinds]
    if rows:
        yield pyarrow.RecordBatch.from_pylist(rows, schema=next(iter(last.values())).schema)


def in_order(batches: "Iterator[RecordBatch]") -> "Iterator[RecordBatch]":
    """Rows of leaders, each with its standings sorted."""
    import pyarrow

    for batch in batches:
        rows = [_leaders(row) for row in batch.to_pylist()]
        best_first = [
            one._replace(standings=tuple(sorted(one.standings, key=order, reverse=True))) for one in rows
        ]
        yield pyarrow.RecordBatch.from_pydict(_columns(best_first), schema=batch.schema)


def _count(key: tuple[int], frames: "Iterator[Frame]", state: "GroupState") -> "Iterator[Frame]":
    import pandas as pd

    trips: list[Trip] = []
    times: list[Trip] = []
    for frame in frames:
        columns = [frame[name].tolist() for name in ("kind", *Trip._fields)]
        for kind, *numbers in zip(*columns, strict=True):
            trip = Trip(*numbers)
            (times if kind == LATEST else trips).append(trip)
    if key[0] == CLOCK:
        beats = [Leaders(beat.dropoff_s, CLOCK, (Standing(0, beat),)) for beat in trips]
        yield pd.DataFrame(_columns(beats))
        return
    window = BucketWindow.from_bytes(*state.get) if state.exists else BucketWindow()
    window, answers = window.advanced(trips, (time.dropoff_s for time in times))
    state.update((window.closed_s, window.trips.tobytes()))
    if answers:
        yield pd.DataFrame(_columns([Leaders(at_s, key[0], best) for at_s, best in answers]))


def _merge(_: tuple[int], frames: "Iterator[Frame]", state: "GroupState") -> "Iterator[Frame]":
    import pandas as pd

    rows = [_leaders(row) for frame in frames for row in frame.to_dict("records")]
    board = Board.from_json(state.get[0]) if state.exists else Board()
    board, changes = board.advanced(
        (row for row in rows if row.bucket != CLOCK),
        (row.standings[0].latest for row in rows if row.bucket == CLOCK),
    )
    state.update((board.to_json(),))
    if changes:
        yield pd.DataFrame(
            {
                "pickup_s": [change.cause.pickup_s for change in changes],
                "dropoff_s": [change.cause.dropoff_s for change in changes],
                "entered_s": [change.cause.entered_s for change in changes],
                "routes": [list(change.routes) for change in changes],
            }
        )


def _columns(rows: Sequence[Leaders]) -> dict[str, list[Any]]:
    """Leaders as columns of `_LEADERS_SCHEMA`."""
    standings = [[as_numbers(standing) for standing in row.standings] for row in rows]
    columns: dict[str, list[Any]] = {
        "at_s": [row.at_s for row in rows],
        "bucket": [row.bucket for row in rows],
    }
    for place, name in enumerate(_STANDING_COLUMNS):
        columns[name] = [[numbers[place] for numbers in row] for row in standings]
    return columns


def _leaders(row: Mapping[str, Any]) -> Leaders:
    """One row of `_LEADERS_SCHEMA`."""
    standings = zip(*(row[name] for name in _STANDING_COLUMNS), strict=True)
    return Leaders(row["at_s"], row["bucket"], tuple(map(from_numbers, standings)))


def challenge_rows(results: StreamLog) -> Iterator[str]:
    """The results so far as lines of the challenge: times, ten pairs of cells, delay in seconds.

    The delay is from the moment the trip was brought in to the moment its row was published.
    """
    from pyarrow import parquet

    for batch in results.all():
        rows = [
            row
            for file in batch.files
            for row in parquet.read_table(results.data_file(file.name)).to_pylist()
        ]
        for row in sorted(rows, key=lambda row: int(row["dropoff_s"])):
            cells = [cell for route in row["routes"] for cell in cells_of(route)]
            missing = ["NULL"] * (2 * LISTED - len(cells))
            times = [_date(row["pickup_s"]), _date(row["dropoff_s"])]
            yield ",".join([*times, *cells, *missing, f"{batch.published_at_s - row['entered_s']:.3f}"])


def export(results: StreamLog, path: Path) -> int:
    """Write `top-routes.csv`, whole or not at all; returns how many rows."""
    write_whole(path, (f"{line}\n" for line in challenge_rows(results)))
    return sum(batch.tuples for batch in results.all())


def _date(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
