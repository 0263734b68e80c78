"""The two ways to reconfigure."""

from enum import Enum


class Method(Enum):
    """How an operator is reconfigured."""

    LIVE = "live"  # replicas join and leave, the query keeps running
    PAUSE_AND_RESUME = "pause-and-resume"  # stop, repartition the state, start
