"""How long an operator is down when it goes from one deployment to another (Cardellini 2017, app. A).

Eq. 25 as printed swaps the labels of scale-out and scale-in, and eq. 31 takes all of a host's replicas where
only those that stay share what they have with new ones (as eq. 32 does): both are corrected here.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints, compiled, compiled_allocating
from penstock.planning.problem import PlannedOperator, Problem

_UNCHANGED = -1.0  # no time at all, where a change may take none either
NOBODY = -1  # fills up the row of a deployment with fewer replicas than others


class Store(NamedTuple):
    """What code and state are moved by, seen from every host."""

    delay_s: Floats
    upload_bytes_s: Floats
    download_bytes_s: Floats
    local_bytes_s: Floats
    spawn_s: Floats
    sync_s: float
    round_trip_for_nothing: bool


def store_of(problem: Problem) -> Store:
    hosts = problem.network.hosts
    return Store(
        delay_s=np.array([host.store_delay_s for host in hosts]),
        upload_bytes_s=np.array([host.upload_bytes_s for host in hosts]),
        download_bytes_s=np.array([host.download_bytes_s for host in hosts]),
        local_bytes_s=np.array([host.local_bytes_s for host in hosts]),
        spawn_s=np.array([host.spawn_s for host in hosts]),
        sync_s=problem.engine.sync_s,
        round_trip_for_nothing=problem.readings.round_trip_for_nothing,
    )


def downtimes_s(problem: Problem, operator: PlannedOperator, members: Ints) -> Floats:
    """Of going from what runs now to each of these deployments: a row has the host of every replica."""
    if problem.current is None:
        return np.zeros(len(members))
    before = _counted(problem, problem.current[operator.name])
    store = store_of(problem)
    if not problem.engine.restarts_all:
        return _alone(store, operator.code_bytes, operator.state_bytes, before, members)
    used = _counted(problem, (host for hosts in problem.current.values() for host in hosts))
    code_bytes = float(sum(one.code_bytes for one in problem.operators))
    changed_s = _with_restart(store, code_bytes, operator.state_bytes, used, before, members)
    # Eq. 33: all restart when one is changed; where none is, nothing is down.
    return np.where(changed_s == _UNCHANGED, 0.0, np.maximum(changed_s, _longest_restart_s(problem, store)))


def _counted(problem: Problem, hosts: Iterable[str]) -> Ints:
    counts = np.zeros(len(problem.network.hosts), np.int64)
    for name in hosts:
        counts[problem.network.index[name]] += 1
    return counts


@compiled
def _transfer_s(store: Store, host: int, size_bytes: float, bytes_s: float) -> float:
    """Eq. 28 to 30: a round trip to the store, and what is moved."""
    if size_bytes == 0.0 and not store.round_trip_for_nothing:
        return 0.0
    return float(2.0 * store.delay_s[host] + size_bytes / bytes_s)


@compiled
def _after(members: Ints, row: int, counts: Ints) -> int:
    """Replicas on every host, counted; how many there are."""
    counts[:] = 0
    total = 0
    for place in range(members.shape[1]):
        if members[row, place] != NOBODY:
            counts[members[row, place]] += 1
            total += 1
    return total


@compiled_allocating
def _alone(store: Store, code_bytes: float, state_bytes: float, before: Ints, members: Ints) -> Floats:
    """Eq. 25 to 32."""
    found = np.zeros(len(members))
    hosts = before.size
    here = before.sum()
    after = np.zeros(hosts, np.int64)
    for row in range(len(members)):
        there = _after(members, row, after)
        if (before == after).all():
            continue
        longest_s = 0.0  # a change from {a} to {a, a} has no pair of hosts: it only synchronises
        for u in range(hosts):
            if before[u] == 0:
                continue
            up = max(before[u] - after[u], 0) / here
            if there > here:
                up += min(before[u], after[u]) * (there - here) / (here * there)
            upload_s = _transfer_s(store, u, up * state_bytes, store.upload_bytes_s[u])
            for place in range(there):
                v = members[row, place]
                if u == v:
                    continue
                come = max(after[v] - before[v], 0)
                down = come / there
                if there < here:
                    down += min(before[v], after[v]) * (here - there) / (here * there)
                code_s = 0.0
                if before[v] == 0:
                    code_s = _transfer_s(store, v, code_bytes, store.download_bytes_s[v])
                took_s = max(code_s, upload_s)
                took_s += _transfer_s(store, v, down * state_bytes, store.download_bytes_s[v])
                if come > 0:
                    took_s += store.spawn_s[v]
                longest_s = max(longest_s, took_s)
        found[row] = store.sync_s + longest_s
    return found


@compiled_allocating
def _with_restart(
    store: Store, code_bytes: float, state_bytes: float, used: Ints, before: Ints, members: Ints
) -> Floats:
    """Eq. 34 to 38: one thing after the other, and the code of all operators in one archive."""
    found = np.full(len(members), _UNCHANGED)
    hosts = before.size
    here = before.sum()
    after = np.zeros(hosts, np.int64)
    for row in range(len(members)):
        there = _after(members, row, after)
        if (before == after).all():
            continue
        longest_s = 0.0
        for u in range(hosts):
            if before[u] == 0:
                continue
            upload_s = _transfer_s(store, u, state_bytes * before[u] / here, store.upload_bytes_s[u])
            for place in range(there):
                v = members[row, place]
                if u == v:
                    continue
                took_s = upload_s
                if used[v] == 0:
                    took_s += _transfer_s(store, v, code_bytes, store.download_bytes_s[v])
                took_s += _transfer_s(store, v, state_bytes * after[v] / there, store.download_bytes_s[v])
                longest_s = max(longest_s, took_s + after[v] * store.spawn_s[v])
        found[row] = store.sync_s + longest_s
    return found


def _longest_restart_s(problem: Problem, store: Store) -> float:
    """Eq. 39 and 40: of the operator that takes longest to restart where it is."""
    longest_s = 0.0
    for operator in problem.operators:
        at = _counted(problem, (problem.current or {})[operator.name])
        for u in np.flatnonzero(at):
            state_s = 2 * operator.state_bytes * at[u] / at.sum() / store.local_bytes_s[u]
            longest_s = max(longest_s, float(state_s + at[u] * store.spawn_s[u]))
    return store.sync_s + longest_s
