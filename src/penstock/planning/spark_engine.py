"""Spark as an engine that restarts everything (eq. 33 to 40), with times measured on the user's own."""

from dataclasses import replace

from penstock.domain.errors import InputError
from penstock.planning.problem import Engine, Problem

# What `penstock bench reconfigurations` calls them.
EXECUTOR = "a replica alone: grant to executor"
FIRST_TASK = "a replica alone: grant to first task on tuples"


def on_spark(problem: Problem, *, executor_s: float, first_task_s: float) -> Problem:
    """A replica starts as soon as an executor does; until tuples flow again, all wait."""
    if not 0 <= executor_s <= first_task_s:
        raise InputError(
            f"an executor after {executor_s:g} s and its first task after {first_task_s:g} s: "
            "the task cannot come first"
        )
    hosts = tuple(replace(host, spawn_s=executor_s) for host in problem.network.hosts)
    return replace(
        problem,
        network=replace(problem.network, hosts=hosts),
        engine=Engine(sync_s=first_task_s - executor_s, restarts_all=True),
    )
