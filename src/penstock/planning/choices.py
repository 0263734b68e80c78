"""All deployments an operator may have, and what each of them costs by itself."""

from collections.abc import Callable, Sequence
from math import comb
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints
from penstock.domain.errors import InputError
from penstock.perf.queueing import replica_response_time
from penstock.planning.downtime import NOBODY, downtimes_s
from penstock.planning.problem import Deployment, PlannedOperator, Problem, multisets

_MOST = 20_000_000  # deployments of an operator times hosts: a third of a gigabyte


class Choices(NamedTuple):
    """Of one operator, one row each; those that could never do are left out."""

    members: Ints  # [choice, replica]: host, sorted, NOBODY beyond the last replica
    latency_s: Floats  # eq. 1
    cost: Floats  # eq. 2
    downtime_s: Floats  # eq. 11

    def only(self, rows: Ints) -> "Choices":
        return Choices(self.members[rows], self.latency_s[rows], self.cost[rows], self.downtime_s[rows])


def choices_of(
    problem: Problem,
    operator: PlannedOperator,
    candidates: Sequence[tuple[int, ...]] | None = None,
    *,
    bounded: bool = True,
) -> Choices:
    """Of all multisets, or of these, those that fit on their hosts and keep every bound by themselves.

    Where not `bounded`, also those that keep none and those that are overloaded.
    """
    if candidates is None:
        _check_size(problem, operator)
        candidates = multisets(problem.allowed(operator), operator.max_replicas)
    most = max((len(hosts) for hosts in candidates), default=1)
    members = np.full((len(candidates), most), NOBODY, np.int64)
    for row, hosts in enumerate(candidates):
        members[row, : len(hosts)] = hosts
    members = members[_fits(problem, operator, members)]
    sizes = (members != NOBODY).sum(axis=1)
    speeds = np.array([host.speedup for host in problem.network.hosts])
    prices = np.array([host.price for host in problem.network.hosts])
    there = members != NOBODY
    slowest = np.where(there, speeds[members], np.inf).min(axis=1, initial=np.inf)
    alike = np.stack([sizes.astype(float), slowest])
    kinds, kind = np.unique(alike, axis=1, return_inverse=True)
    latency_s = np.array([_latency_s(problem, operator, int(size), float(speed)) for size, speed in kinds.T])
    latency_s = latency_s[kind.ravel()]
    cost = operator.cost * operator.demand * np.where(there, prices[members], 0.0).sum(axis=1)
    found = Choices(members, latency_s, cost, downtimes_s(problem, operator, members))
    if not bounded:
        return found
    goal = problem.goal
    possible = (
        (found.latency_s <= goal.max_response_time_s)
        & (found.cost <= goal.max_cost)
        & (found.downtime_s <= goal.max_downtime_s)
    )
    return found.only(np.flatnonzero(possible))


def _check_size(problem: Problem, operator: PlannedOperator) -> None:
    hosts = len(problem.allowed(operator))
    count = comb(hosts + operator.max_replicas, operator.max_replicas) - 1
    if count * len(problem.network.hosts) > _MOST:
        raise InputError(
            f"operator '{operator.name}': up to {operator.max_replicas} replicas on {hosts} hosts make "
            f"{count:,} deployments, too many to search; give fewer of either, or plan one step at a time "
            "(restricted)"
        )


def _fits(problem: Problem, operator: PlannedOperator, members: Ints) -> Ints:
    """Rows whose replicas have room when nothing else is there."""
    room = np.array([int(host.capacity / operator.demand + 1e-9) for host in problem.network.hosts])
    fits = np.ones(len(members), bool)
    for place in range(members.shape[1]):
        host = members[:, place : place + 1]
        same = ((members == host) & (host != NOBODY)).sum(axis=1)
        fits &= same <= np.where(host[:, 0] == NOBODY, 1, room[host[:, 0]])
    return np.flatnonzero(fits)


def _latency_s(problem: Problem, operator: PlannedOperator, replicas: int, speed: float) -> float:
    """Eq. 1: of the slowest replica, with the load split evenly."""
    if operator.queue is None:
        return 0.0
    rate = operator.rate / replicas
    if problem.readings.speed_in_queue:
        return float(replica_response_time(operator.queue, rate, speed))
    return float(replica_response_time(operator.queue, rate, 1.0)) / speed


def deployment(problem: Problem, members: Ints) -> Deployment:
    return tuple(problem.network.hosts[host].name for host in members if host != NOBODY)


Candidates = Callable[[PlannedOperator], Sequence[tuple[int, ...]]]
