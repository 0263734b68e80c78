"""Two operators that wait for an answer: a lookup in a service, and a score from another."""

from penstock.domain.application import Application, Operator, pipeline

NAME = "lookups"


def lookup_and_score(max_replicas: int) -> Application:
    """20 ms a lookup, 2 ms a score."""
    return pipeline(
        NAME,
        Operator(name="lookup", service_time_s=0.020, service_scv=0.5, max_replicas=max_replicas),
        Operator(name="score", service_time_s=0.002, service_scv=0.5, max_replicas=max_replicas),
    )
