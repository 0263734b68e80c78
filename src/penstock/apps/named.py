"""Every application that comes with Penstock, by name."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from penstock.apps.paper_graphs import GRAPHS
from penstock.apps.top_routes.graph import BOUNDS_S, OBJECTIVE_S, REFRESH_DELAY_S, top_routes_graph
from penstock.domain.application import Application
from penstock.domain.errors import InputError

TOP_ROUTES = "top-routes"


def _top_routes(max_replicas: int) -> Application:
    graph = top_routes_graph()
    return replace(
        graph,
        operators=tuple(
            replace(operator, max_replicas=min(operator.max_replicas, max_replicas))
            for operator in graph.operators
        ),
    )


APPLICATIONS: Mapping[str, Callable[[int], Application]] = {**GRAPHS, TOP_ROUTES: _top_routes}


def application_named(name: str, max_replicas: int) -> Application:
    """The application, no operator with more than `max_replicas`."""
    if name not in APPLICATIONS:
        raise InputError(f"application '{name}': unknown; choose one of {', '.join(APPLICATIONS)}")
    return APPLICATIONS[name](max_replicas)


def constant_delays_s(name: str) -> dict[str, float]:
    """Parts of operators' response times that depend neither on load nor on nodes."""
    return {"globalRank": REFRESH_DELAY_S} if name == TOP_ROUTES else {}


def usual_bounds_s(name: str, objective_s: float) -> dict[str, float] | None:
    """Bounds of single operators where a paper gives them, in proportion to the objective."""
    if name != TOP_ROUTES:
        return None
    return {operator: bound * objective_s / OBJECTIVE_S for operator, bound in BOUNDS_S.items()}
