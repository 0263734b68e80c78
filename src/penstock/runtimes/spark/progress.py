"""What Spark reports of a micro-batch of any query; pure, so it is tested without Spark."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple


class Reported(NamedTuple):
    """One micro-batch that ended."""

    batch: int  # its number
    rows: int  # taken from all sources
    began_s: float
    took_s: float
    behind: float | None  # rows that were there when it began and that it left; None: no source says


def reported(progress: Mapping[str, Any]) -> Reported:
    """One entry of `recentProgress`."""
    left = [rows for one in progress["sources"] if (rows := rows_behind(one)) is not None]
    return Reported(
        batch=int(progress["batchId"]),
        rows=int(progress["numInputRows"]),
        began_s=datetime.fromisoformat(progress["timestamp"]).timestamp(),
        took_s=float(progress["durationMs"]["triggerExecution"]) / 1000,
        behind=sum(left) if left else None,
    )


def rows_behind(source: Mapping[str, Any]) -> float | None:
    """Rows that a source had and the batch did not take; None where it does not say.

    Offsets count rows (Kafka), seconds (rate), files or whatever else: an offset is worth as many rows as
    the batch has taken for each of its own.
    """
    begin, end, latest = (offset(source.get(key)) for key in ("startOffset", "endOffset", "latestOffset"))
    behind = distance(end, latest)
    rows_each: float | None = None
    if behind is None:
        behind = _by_metrics(source.get("metrics") or {}, end)
        rows_each = 1.0  # who has these metrics counts rows
    if behind is None or behind <= 0:
        return behind if behind is None else 0.0
    taken, rows = distance(begin, end), int(source["numInputRows"])
    if taken and rows:
        rows_each = rows / taken
    return None if rows_each is None else behind * rows_each


def _by_metrics(metrics: Mapping[str, str], end: Any) -> float | None:
    """From the lag of partitions, as sources in the manner of Kafka report it: of all, or of the worst."""
    try:
        if "avgOffsetsBehindLatest" in metrics and (partitions := _leaves(end)):
            return float(metrics["avgOffsetsBehindLatest"]) * partitions
        return float(metrics["maxOffsetsBehindLatest"])
    except (KeyError, ValueError):
        return None


def offset(text: object) -> Any:
    """Offsets are JSON of any form; None where there is none."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None


def distance(begin: Any, end: Any) -> float | None:
    """From one offset to another, over all partitions; None where they are not made of numbers alike."""
    if isinstance(begin, dict) and isinstance(end, dict):
        # A partition that is new began at 0.
        parts = [distance(begin.get(key, _zero(end[key])), end[key]) for key in end]
        known = [part for part in parts if part is not None]
        return sum(known) if known and len(known) == len(parts) else None
    if _is_number(begin) and _is_number(end):
        return float(end - begin)
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _zero(like: Any) -> Any:
    return {} if isinstance(like, dict) else 0


def _leaves(value: Any) -> int:
    return sum(map(_leaves, value.values())) if isinstance(value, dict) else 1 if _is_number(value) else 0
