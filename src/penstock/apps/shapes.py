"""Short ways to write the graphs of applications down."""

from penstock.domain.application import Application, Operator, Sink, Source, Stream


def operator_at(name: str, rate: float, scv: float, max_replicas: int) -> Operator:
    """An operator by the tuples per second that one of its replicas serves."""
    return Operator(name=name, service_time_s=1 / rate, service_scv=scv, max_replicas=max_replicas)


def graph_of(name: str, operators: tuple[Operator, ...], edges: tuple[tuple[str, str], ...]) -> Application:
    """A graph with one source; what is called sink... is one."""
    sinks = sorted({target for _, target in edges if target.startswith("sink")})
    return Application(
        name=name,
        sources=(Source(name="source"),),
        operators=operators,
        sinks=tuple(Sink(name=sink) for sink in sinks),
        streams=tuple(Stream(origin=origin, target=target) for origin, target in edges),
    )
