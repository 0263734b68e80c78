"""Response time, utilisation and throughput of an operator in a given deployment."""

import numpy as np

from penstock.compiled import Floats, compiled
from penstock.perf.deployments import (
    Deployments,
    count_of,
    replicas_of,
    slowest_of,
    speed_of,
)
from penstock.perf.queueing import QueueModel, capacity, load, replica_response_time, waiting_time


@compiled
def replica_rate(model: QueueModel, space: Deployments, handle: int, rate: float, speed: float) -> float:
    """Tuples/s that reach a replica of this speed."""
    if model.by_speed:
        return rate * speed / speed_of(space, handle)
    return rate / replicas_of(space, handle)


@compiled
def response_time(model: QueueModel, space: Deployments, handle: int, rate: float) -> float:
    """Mean response time of the operator: of its worst replica, or over all tuples."""
    if model.pooled:
        speed = speed_of(space, handle)
        served_s = model.service_time_s * replicas_of(space, handle) / speed
        return served_s + waiting_time(model, rate, speed)
    if not model.by_mean:
        slowest = slowest_of(space, handle)
        return replica_response_time(model, replica_rate(model, space, handle, rate, slowest), slowest)
    total = 0.0
    weight = 0.0
    for node_type in range(space.speedup.size):
        count = count_of(space, handle, node_type)
        if count > 0:
            speed = space.speedup[node_type]
            share = count * (speed if model.by_speed else 1.0)
            total += share * replica_response_time(
                model, replica_rate(model, space, handle, rate, speed), speed
            )
            weight += share
    return total / weight


@compiled
def utilisation(model: QueueModel, space: Deployments, handle: int, rate: float) -> float:
    """Share of time a replica is busy: the worst one's, or the mean over replicas. Above 1: overload."""
    if model.by_mean:
        return mean_utilisation(model, space, handle, rate)
    slowest = slowest_of(space, handle)
    return load(model, replica_rate(model, space, handle, rate, slowest), slowest)


@compiled
def mean_utilisation(model: QueueModel, space: Deployments, handle: int, rate: float) -> float:
    """Share of time the replicas are busy on average."""
    slowest = slowest_of(space, handle)
    replicas = replicas_of(space, handle)
    if model.by_speed or speed_of(space, handle) == replicas * slowest:
        # All are equally busy: the same number to the last digit, and most deployments are of one type.
        return load(model, replica_rate(model, space, handle, rate, slowest), slowest)
    total = 0.0
    for node_type in range(space.speedup.size):
        count = count_of(space, handle, node_type)
        if count > 0:
            speed = space.speedup[node_type]
            total += count * load(model, replica_rate(model, space, handle, rate, speed), speed)
    return total / replicas


@compiled
def fill_utilisations(model: QueueModel, space: Deployments, handle: int, rate: float, busy: Floats) -> None:
    """Of every replica, in the order of the node types, into the beginning of `busy`."""
    replica = 0
    for node_type in range(space.speedup.size):
        speed = space.speedup[node_type]
        for _ in range(count_of(space, handle, node_type)):
            busy[replica] = load(model, replica_rate(model, space, handle, rate, speed), speed)
            replica += 1


def utilisation_by_replica(
    model: QueueModel, space: Deployments, handle: int, rate: float
) -> tuple[float, ...]:
    """Of every replica, in the order of the node types."""
    busy = np.empty(replicas_of(space, handle))
    fill_utilisations(model, space, handle, rate, busy)
    return tuple(busy.tolist())


@compiled
def throughput(model: QueueModel, space: Deployments, handle: int, rate: float) -> float:
    """Tuples/s that get through: each replica passes what reaches it, up to its capacity."""
    carried = 0.0
    for node_type in range(space.speedup.size):
        count = count_of(space, handle, node_type)
        if count > 0:
            speed = space.speedup[node_type]
            carried += count * min(replica_rate(model, space, handle, rate, speed), capacity(model, speed))
    return carried
