"""How much of the stream reaches each operator: the traffic equations of an open network."""

from penstock.domain.application import Application


def visits(application: Application) -> dict[str, float]:
    """Tuples that reach each operator per tuple of a source; every source emits at the same rate."""
    leaving = {source.name: 1.0 for source in application.sources}
    reached: dict[str, float] = {}
    for operator in application.in_order:
        reached[operator.name] = sum(leaving[name] for name in application.upstream(operator.name))
        leaving[operator.name] = reached[operator.name] * operator.selectivity
    return reached
