"""Imported by every Python process at its start, where this folder is on its path: a clock and a disk that
do what a file says. Only within a trial, and of no use elsewhere."""

import json
import os
import time
from typing import Any

_PLACE = os.environ.get("PENSTOCK_CHAOS_INSIDE", "")
_true_time, _true_time_ns, _true_fsync = time.time, time.time_ns, os.fsync
_known: dict[str, Any] = {"read": None, "jump_s": 0.0, "fsync_s": 0.0}


def _now() -> dict[str, Any]:
    """What the file says, read again when it has changed."""
    try:
        changed = os.stat(_PLACE).st_mtime_ns
        if changed != _known["read"]:
            with open(_PLACE, encoding="utf-8") as file:
                _known.update(json.load(file), read=changed)
    except (OSError, ValueError):  # being replaced: as it was
        pass
    return _known


def _time() -> float:
    jump_s: float = _now()["jump_s"]
    return _true_time() + jump_s


def _time_ns() -> int:
    return _true_time_ns() + int(_now()["jump_s"] * 1e9)


def _fsync(fd: Any) -> None:
    time.sleep(_now()["fsync_s"])
    _true_fsync(fd)


if _PLACE:
    time.time, time.time_ns, os.fsync = _time, _time_ns, _fsync
