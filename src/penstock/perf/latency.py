"""Response time over the graph: the longest source-sink path, and each operator's share of it."""

from collections.abc import Mapping, Set
from dataclasses import replace

import numpy as np

from penstock.compiled import Flags, Floats
from penstock.domain.application import Application, Path
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective


def path_times(application: Application, operator_times: Mapping[str, Floats]) -> dict[Path, Floats]:
    """Response time of every path, slot by slot: the sum over its operators."""
    return {path: np.sum([operator_times[name] for name in path], axis=0) for path in application.paths}


def end_to_end(application: Application, operator_times: Mapping[str, Floats]) -> Floats:
    """Response time of the application, slot by slot: its longest path."""
    longest: Floats = np.maximum.reduce(list(path_times(application, operator_times).values()))
    return longest


def violated(application: Application, objective: Objective, operator_times: Mapping[str, Floats]) -> Flags:
    """Whether any path exceeds its own limit, slot by slot."""
    check_objective(application, objective)
    times = path_times(application, operator_times)
    any_path: Flags = np.logical_or.reduce([time > objective.for_path(path) for path, time in times.items()])
    return any_path


def equal_shares(application: Application, objective: Objective) -> dict[str, float]:
    """Each operator's bound: an equal share of the tightest path through it (Russo 2023, Alg. 5, l. 1-4)."""
    check_objective(application, objective)
    return {
        operator.name: min(
            objective.for_path(path) / len(path) for path in application.paths if operator.name in path
        )
        for operator in application.operators
    }


def naive_shares(application: Application, objective: Objective) -> dict[str, float]:
    """Each operator's bound: an equal share, then what no path has used up (Russo 2023, Alg. 5).

    Spare latency goes to operators in proportion to what they have (line 5). All bounds
    that may still grow do so by one common factor until a path is used up; its operators
    then stay, and the others keep growing. So every path that ends with latency to spare has
    only operators that another, used-up path holds back, and no path exceeds its limit.
    """
    bounds = equal_shares(application, objective)
    growing = set(bounds)
    while growing:
        open_paths = [path for path in application.paths if growing.intersection(path)]
        factors = {path: _factor(path, objective.for_path(path), bounds, growing) for path in open_paths}
        factor = min(factors.values())
        bounds |= {name: factor * bounds[name] for name in growing}
        growing -= {name for path in open_paths if factors[path] <= factor for name in path}
    return bounds


def _factor(path: Path, limit: float, bounds: Mapping[str, float], growing: Set[str]) -> float:
    """By how much the growing operators of a path may be multiplied before it is used up."""
    held = sum(bounds[name] for name in path if name not in growing)
    return (limit - held) / sum(bounds[name] for name in path if name in growing)


def without_delays(
    application: Application, objective: Objective, delays_s: Mapping[str, float]
) -> Objective:
    """What constant delays leave of every path's limit."""
    if not delays_s:
        return objective
    left = {
        path: objective.for_path(path) - sum(delays_s.get(name, 0.0) for name in path)
        for path in application.paths
    }
    return replace(objective, per_path_s=left)


def check_objective(
    application: Application,
    objective: Objective,
    *,
    fastest: float | None = None,
    node: str = "the fastest node",
    delays_s: Mapping[str, float] | None = None,
) -> None:
    """Every path of the objective exists, every path has a limit, and none is faster than service.

    `fastest` is the largest speedup on offer, or that of the one `node` type in use; without it
    service times are not looked at.
    `delays_s` is what an operator adds whatever it runs on.
    """
    for path in objective.per_path_s:
        if path not in application.paths:
            known = ", ".join("-".join(known) for known in application.paths)
            raise InputError(
                f"objective: application '{application.name}' has no path {'-'.join(path)}; it has {known}"
            )
    for path in application.paths:
        limit = objective.for_path(path)
        if fastest is None:
            continue
        least = sum(application.operator(name).service_time_s for name in path) / fastest
        least += sum((delays_s or {}).get(name, 0.0) for name in path)
        if least >= limit:
            raise InputError(
                f"application '{application.name}': path {'-'.join(path)} takes {1000 * least:.4g} ms of "
                f"service alone on {node} (speedup {fastest:g}), which is not below its objective "
                f"of {1000 * limit:.4g} ms: every interval would violate"
            )
