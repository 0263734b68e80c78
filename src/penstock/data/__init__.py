"""Traces: files, statistics, made-up ones; and raw data to traces, on Spark.

The parts of a pipeline of your own can be imported from here; it is loaded when asked for,
because Spark takes a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.data.arrivals import arrival_rates as arrival_rates
    from penstock.data.arrivals import level_transitions as level_transitions
    from penstock.data.arrivals import trace_statistics as trace_statistics
    from penstock.data.events import accelerate as accelerate
    from penstock.data.events import amplify as amplify
    from penstock.data.events import key_frequencies as key_frequencies
    from penstock.data.events import trip_events as trip_events
    from penstock.data.routes import GRID_300 as GRID_300
    from penstock.data.routes import GRID_600 as GRID_600
    from penstock.data.routes import clean_trips as clean_trips
    from penstock.data.spark_session import spark_session as spark_session
    from penstock.data.trips import debs_trips as debs_trips

_HOMES = {
    "GRID_300": "routes",
    "GRID_600": "routes",
    "accelerate": "events",
    "amplify": "events",
    "arrival_rates": "arrivals",
    "clean_trips": "routes",
    "debs_trips": "trips",
    "key_frequencies": "events",
    "level_transitions": "arrivals",
    "spark_session": "session",
    "trace_statistics": "arrivals",
    "trip_events": "events",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"penstock.data.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'penstock.data' has no attribute '{name}'")
