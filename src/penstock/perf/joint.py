"""All operators of an application as one: joint deployments, and the response time from source to sink.

A joint deployment (k_1, ..., k_N) is a row of the same arrays as one operator's deployment
(`perf.deployments`), with operators in the place of node types: `count_of(space, handle, o)`
is the replicas of operator o. What differs is the actions: one more, one fewer or nothing
for every operator at once, 3^N of them (Russo 2018, sec. 2), nothing at all first.
"""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, compiled, compiled_allocating, frozen_floats, frozen_ints
from penstock.domain.application import Application
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.perf.deployments import NOWHERE, Deployments, count_of, replicas_of
from penstock.perf.queueing import QueueModel, load, queue_as_known, replica_response_time
from penstock.perf.traffic import visits

LARGEST_JOINT_TABLE = 50_000_000  # joint deployments times joint actions


def check_joint_size(max_replicas: Sequence[int], *, largest: int = LARGEST_JOINT_TABLE) -> None:
    """Whether a table of all joint deployments and actions would fit."""
    operators = len(max_replicas)
    for operator, limit in enumerate(max_replicas):
        if limit < 1:
            raise InputError(f"operator {operator}: max_replicas={limit}; at least one replica must run")
    entries = prod(max_replicas) * 3**operators
    if operators < 1 or entries > largest:
        raise InputError(
            f"{operators} operators with {', '.join(map(str, max_replicas))} replicas: "
            f"{prod(max_replicas):,} joint deployments of {3**operators:,} actions are too many "
            "to plan over; manage operators one by one"
        )


def joint_deployments(max_replicas: Sequence[int]) -> Deployments:
    """Every way to run 1 to `max_replicas[o]` identical replicas of each operator o, all at price 1."""
    check_joint_size(max_replicas)
    operators = len(max_replicas)
    bits = max(max_replicas).bit_length()
    most = np.array(max_replicas, dtype=np.int64)
    counts = np.array(list(product(*(range(1, limit + 1) for limit in max_replicas))), dtype=np.int64)
    places = np.append(np.cumprod(most[:0:-1])[::-1], 1)  # row of k: sum of (k_o - 1) * place_o
    changes = np.array(list(product((0, -1, 1), repeat=operators)), dtype=np.int64)
    successor = np.full((len(counts), len(changes)), NOWHERE, dtype=np.int64)
    for action, change in enumerate(changes):
        target = counts + change
        possible = ((target >= 1) & (target <= most)).all(axis=1)
        successor[possible, action] = (target[possible] - 1) @ places
    total = counts.sum(axis=1)
    ones = np.ones(operators)
    return Deployments(
        speedup=frozen_floats(ones),
        price=frozen_floats(ones),
        max_replicas=int(most.sum()),
        bits=bits,
        enumerated=True,
        packed=frozen_ints((counts << (bits * np.arange(operators - 1, -1, -1))).sum(axis=1)),
        successor=frozen_ints(successor),
        replicas=frozen_ints(total),
        slowest=frozen_floats(np.ones(len(counts))),
        speed=frozen_floats(total),
        cost=frozen_floats(total),
    )


class JointQueues(NamedTuple):
    """What a kernel needs to know about all operators: their queues and the paths through them."""

    share: Floats  # tuples that reach each operator per tuple of the source
    service_time_s: Floats  # per operator
    service_scv: Floats  # per operator; 0 is M/D/1
    batch_fixed_s: Floats  # per operator, of its micro-batches
    trigger_s: Floats  # per operator
    in_batches: Floats  # per operator, 1 where it has any
    on_path: Floats  # path x operator, 1 where the path goes through it
    strictness: Floats  # per path: the reference limit over its own; 1 where all limits are the same
    no_curve: Floats


def reference_limit(application: Application, objective: Objective) -> float:
    """The limit that counts for all: the one for every path, or else the tightest."""
    limits = [objective.for_path(path) for path in application.paths]
    return min(limits) if objective.response_time_s is None else objective.response_time_s


def joint_queues(application: Application, objective: Objective | None = None) -> JointQueues:
    """The operators of an application in its own order, replicas as M/G/1 queues or of micro-batches.

    Where paths have limits of their own, times count in multiples of them: a path is late
    exactly when it counts for more than the reference limit.
    """
    reaching = visits(application)
    names = [operator.name for operator in application.operators]
    queues = [
        queue_as_known(operator.service_time_s, operator.service_scv, operator.batching)
        for operator in application.operators
    ]
    return JointQueues(
        share=frozen_floats([reaching[name] for name in names]),
        service_time_s=frozen_floats([queue.service_time_s for queue in queues]),
        service_scv=frozen_floats([queue.service_scv for queue in queues]),
        batch_fixed_s=frozen_floats([queue.batch_fixed_s for queue in queues]),
        trigger_s=frozen_floats([queue.trigger_s for queue in queues]),
        in_batches=frozen_floats([queue.in_batches for queue in queues]),
        on_path=frozen_floats([[float(name in path) for name in names] for path in application.paths]),
        strictness=frozen_floats(_strictness(application, objective)),
        no_curve=frozen_floats([]),
    )


def _strictness(application: Application, objective: Objective | None) -> list[float]:
    if objective is None:
        return [1.0] * len(application.paths)
    reference = reference_limit(application, objective)
    return [reference / objective.for_path(path) for path in application.paths]


@compiled
def queue_of(queues: JointQueues, operator: int) -> QueueModel:
    """One operator's queue, as a lone operator would have it."""
    service, scv = queues.service_time_s[operator], queues.service_scv[operator]
    return QueueModel(
        service,
        1.0,
        scv,
        1.0,
        False,
        False,
        queues.no_curve,
        queues.no_curve,
        queues.in_batches[operator] > 0,
        queues.batch_fixed_s[operator],
        queues.trigger_s[operator],
    )


@compiled
def joint_response_time(queues: JointQueues, space: Deployments, handle: int, rate: float) -> float:
    """The latest source-sink path, operators splitting their arrivals evenly over their replicas."""
    longest = 0.0
    for path in range(queues.on_path.shape[0]):
        total = 0.0
        for operator in range(queues.share.size):
            if queues.on_path[path, operator] > 0:
                each = rate * queues.share[operator] / count_of(space, handle, operator)
                total += replica_response_time(queue_of(queues, operator), each, 1.0)
        longest = max(longest, queues.strictness[path] * total)
    return longest


@compiled
def joint_utilisation(queues: JointQueues, space: Deployments, handle: int, rate: float) -> float:
    """Of the busiest operator."""
    busiest = 0.0
    for operator in range(queues.share.size):
        each = rate * queues.share[operator] / count_of(space, handle, operator)
        busiest = max(busiest, load(queue_of(queues, operator), each, 1.0))
    return busiest


@compiled
def joint_mean_utilisation(queues: JointQueues, space: Deployments, handle: int, rate: float) -> float:
    """Over the replicas of all operators."""
    total = 0.0
    for operator in range(queues.share.size):
        count = count_of(space, handle, operator)
        total += count * load(queue_of(queues, operator), rate * queues.share[operator] / count, 1.0)
    return total / replicas_of(space, handle)


@compiled_allocating
def joint_response_times(queues: JointQueues, space: Deployments, rates: Floats) -> Floats:
    """Response time of every joint deployment (rows) at every one of these rates (columns)."""
    times = np.empty((space.replicas.size, rates.size))
    for handle in range(times.shape[0]):
        for index in range(rates.size):
            times[handle, index] = joint_response_time(queues, space, handle, rates[index])
    return times
