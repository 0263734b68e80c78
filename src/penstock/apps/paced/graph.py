"""The graph of the default paced application: a pipeline whose middle operator is the slow one."""

from penstock.domain.application import Application, Operator, pipeline

NAME = "paced"


def light_heavy_medium(max_replicas: int) -> Application:
    """1, 8 and 2 ms a tuple."""
    return pipeline(
        NAME,
        Operator(name="light", service_time_s=0.001, service_scv=0.5, max_replicas=max_replicas),
        Operator(name="heavy", service_time_s=0.008, service_scv=0.5, max_replicas=max_replicas),
        Operator(name="medium", service_time_s=0.002, service_scv=0.5, max_replicas=max_replicas),
    )
