"""How long Spark's own dynamic allocation takes for an executor, with the same application beside it."""

import threading
import time
from collections.abc import Iterator

from penstock.bench.light_load import Place
from penstock.runtimes.spark.allocation import DEFAULT_PROFILE, kill
from penstock.runtimes.spark.cluster import ClusterError
from penstock.runtimes.spark.executors import executors

_BACKLOG_S = 1.0  # tasks wait so long before it asks: spark.dynamicAllocation.schedulerBacklogTimeout
_POLL_S = 0.1
_CALM_S = 2.0
_NOTICED_S = 1.0
_COMES_S = 120.0


def executor_times(place: Place, times: int) -> Iterator[float]:
    """From asking for an executor to having it, in seconds; the application is at work.

    A job of one task on a profile without executors has to wait for one. Spark asks for it when the
    backlog is a second old, at the next of ten looks a second; ours is seen as often.
    """
    for _ in range(times):
        time.sleep(_CALM_S)
        place.check()
        job = threading.Thread(target=_one_task, args=(place,), daemon=True)
        began_s = time.monotonic()
        job.start()
        while not _there(place):
            _check(place, began_s, "no executor")
            time.sleep(_POLL_S)
        yield time.monotonic() - began_s - _BACKLOG_S
        job.join(_COMES_S)
        _clear(place)


def _there(place: Place) -> list[str]:
    return [one.id for one in executors(place.spark).values() if one.profile == DEFAULT_PROFILE]


def _one_task(place: Place) -> None:
    place.spark.sparkContext.parallelize([0], 1).count()


def _clear(place: Place) -> None:
    """Spark would send it away after a minute of idling; before it has noticed the end, it replaces it."""
    began_s = time.monotonic()
    while True:
        time.sleep(_NOTICED_S)
        found = _there(place)
        if not found:
            return
        _check(place, began_s, "the executor does not leave")
        kill(found, place.spark.sparkContext)


def _check(place: Place, began_s: float, problem: str) -> None:
    place.check()
    if time.monotonic() - began_s > _COMES_S:
        raise ClusterError(f"dynamic allocation: {problem} within {_COMES_S:g} s")
