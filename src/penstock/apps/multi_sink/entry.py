"""The entry of the graph with three sinks."""

from penstock.apps.multi_sink.graph import multi_sink
from penstock.apps.paced.entry import PAPER_SLOWDOWN, paced_entry

APPLICATION = paced_entry(
    "multi-sink",
    "three sinks, paths of different length (Russo 2023, Fig. 19)",
    multi_sink,
    slowdown=PAPER_SLOWDOWN,
)
