"""Response time over the graph: the longest source-sink path, and each operator's share of it."""

from collections.abc import Mapping

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
    _check_paths(application, objective)
    times = path_times(application, operator_times)
    any_path: Flags = np.logical_or.reduce([time > objective.for_path(path) for path, time in times.items()])
    return any_path


def equal_shares(application: Application, objective: Objective) -> dict[str, float]:
    """Each operator's bound: an equal share of the tightest path through it (seed 001, Alg. 5, lines 1-4)."""
    _check_paths(application, objective)
    return {
        operator.name: min(
            objective.for_path(path) / len(path) for path in application.paths if operator.name in path
        )
        for operator in application.operators
    }


def _check_paths(application: Application, objective: Objective) -> None:
    for path in objective.per_path_s:
        if path not in application.paths:
            known = ", ".join("-".join(known) for known in application.paths)
            raise InputError(
                f"objective: application '{application.name}' has no path {'-'.join(path)}; it has {known}"
            )
