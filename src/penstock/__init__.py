"""Penstock keeps stream-processing applications inside their response-time objective at the lowest cost."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.domain.objective import Objective
    from penstock.live.attach import Attached

__version__ = "0.1.0"


def attach(
    spark: "SparkSession",
    query: "StreamingQuery",
    *,
    objective: "Objective",
    policy: str = "threshold-c",
    max_replicas: int = 10,
    interval_s: float = 10.0,
    advise: bool = False,
    journal: "Path | str | None" = None,
) -> "Attached":
    """Put an existing streaming query on a standalone cluster under control; see docs/spark.md."""
    from penstock.live.attach import attach as put_under_control

    return put_under_control(
        spark,
        query,
        objective=objective,
        policy=policy,
        max_replicas=max_replicas,
        interval_s=interval_s,
        advise=advise,
        journal=journal,
    )
