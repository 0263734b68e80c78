"""Application A of Russo 2023 (Fig. 19): three operators one after another."""

from penstock.apps.shapes import operator_at
from penstock.domain.application import Application, pipeline


def three_in_a_row(max_replicas: int) -> Application:
    """Application A: 1000, 300 and 300 tuples/s, SCV .5, 1 and .1."""
    return pipeline(
        "pipeline",
        operator_at("first", 1000, 0.5, max_replicas),
        operator_at("second", 300, 1.0, max_replicas),
        operator_at("third", 300, 0.1, max_replicas),
    )
