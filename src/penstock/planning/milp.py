"""EDRP as the paper writes it down, an integer linear programme (eq. 12 to 23), solved by HiGHS.

The independent check of `search.py`, and the form other solvers read. It has a variable for every pair of
deployments of two operators with a stream between them, which is what makes it slow.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints
from penstock.domain.errors import InputError
from penstock.planning.choices import Choices
from penstock.planning.downtime import NOBODY
from penstock.planning.problem import Problem

MOST_WRITTEN = 200_000  # variables


class Milp(NamedTuple):
    """Minimise cost @ z with lower <= A z <= upper, all of z binary but the last two (r and t_D)."""

    cost: Floats
    rows: Ints  # of the entries of A
    columns: Ints
    values: Floats
    lower: Floats
    upper: Floats
    names: list[str]
    x_first: Ints  # by operator: column of its first deployment


class _Rows:
    """Constraints as they are added."""

    def __init__(self) -> None:
        self.rows: list[Ints] = []
        self.columns: list[Ints] = []
        self.values: list[Floats] = []
        self.lower: list[float] = []
        self.upper: list[float] = []

    def add(self, columns: Ints, values: Floats, lower: float, upper: float) -> None:
        used = values != 0
        self.rows.append(np.full(int(used.sum()), len(self.lower), np.int64))
        self.columns.append(columns[used])
        self.values.append(values[used])
        self.lower.append(lower)
        self.upper.append(upper)


def check_size(problem: Problem, choices: Sequence[Choices]) -> None:
    """Refuse a programme that nobody could solve, and that would not fit into memory as text."""
    sizes = {
        operator.name: len(one.members) for operator, one in zip(problem.operators, choices, strict=True)
    }
    count = sum(sizes.values()) + sum(sizes[one.origin] * sizes[one.target] for one in problem.streams)
    if count > MOST_WRITTEN:
        raise InputError(
            f"the integer programme has {count:,} variables, one for every pair of deployments of two "
            f"operators with a stream between them; at most {MOST_WRITTEN:,} are written: give fewer hosts "
            "or replicas, or plan one step at a time (restricted)"
        )


def as_milp(problem: Problem, choices: Sequence[Choices]) -> Milp:
    operators, goal = problem.operators, problem.goal
    index = {operator.name: number for number, operator in enumerate(operators)}
    sizes = [len(one.members) for one in choices]
    x_first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    ends = [(index[stream.origin], index[stream.target]) for stream in problem.streams]
    pairs = [sizes[i] * sizes[j] for i, j in ends]
    y_first = x_first[-1] + np.concatenate([[0], np.cumsum(pairs)]).astype(np.int64)
    r, t = int(y_first[-1]), int(y_first[-1]) + 1
    delays = [_delays_s(problem, choices[i], choices[j]) for i, j in ends]
    prices = [
        stream.rate * _prices(problem, choices[i], choices[j])
        for stream, (i, j) in zip(problem.streams, ends, strict=True)
    ]
    money = np.concatenate(
        [*(one.cost for one in choices), *(price.ravel() for price in prices), np.zeros(2)]
    )
    cost = goal.cost / goal.max_cost * money
    cost[r] = goal.response_time / goal.max_response_time_s
    cost[t] = goal.downtime / goal.max_downtime_s

    def x(i: int) -> Ints:
        return np.arange(x_first[i], x_first[i + 1])

    rows = _Rows()
    everything = np.arange(len(money))
    for path in _paths(problem):  # eq. 13 and 6
        columns, values = [np.array([r])], [np.array([1.0])]
        for i in path:
            columns.append(x(i))
            values.append(-choices[i].latency_s)
        for pair in pairwise(path):
            e = ends.index(pair)
            columns.append(np.arange(y_first[e], y_first[e + 1]))
            values.append(-delays[e].ravel())
        rows.add(np.concatenate(columns), np.concatenate(values), 0.0, np.inf)
    for i, one in enumerate(choices):  # eq. 14
        rows.add(np.concatenate([[t], x(i)]), np.concatenate([[1.0], -one.downtime_s]), 0.0, np.inf)
    rows.add(np.array([r]), np.ones(1), -np.inf, goal.max_response_time_s)  # eq. 15
    rows.add(everything, money, -np.inf, goal.max_cost)  # eq. 16
    rows.add(np.array([t]), np.ones(1), -np.inf, goal.max_downtime_s)  # eq. 17
    for host, there in enumerate(problem.network.hosts):  # eq. 18
        taken = [
            operator.demand * (one.members == host).sum(axis=1)
            for operator, one in zip(operators, choices, strict=True)
        ]
        rows.add(np.arange(x_first[-1]), np.concatenate(taken).astype(float), -np.inf, there.capacity)
    for i in range(len(operators)):  # eq. 19
        rows.add(x(i), np.ones(sizes[i]), 1.0, 1.0)
    for e, (i, j) in enumerate(ends):  # eq. 20 and 21
        y = np.arange(y_first[e], y_first[e + 1]).reshape(sizes[i], sizes[j])
        for u in range(sizes[i]):
            rows.add(
                np.concatenate([[x_first[i] + u], y[u]]),
                np.concatenate([[-1.0], np.ones(sizes[j])]),
                0.0,
                0.0,
            )
        for v in range(sizes[j]):
            rows.add(
                np.concatenate([[x_first[j] + v], y[:, v]]),
                np.concatenate([[-1.0], np.ones(sizes[i])]),
                0.0,
                0.0,
            )
    return Milp(
        cost,
        np.concatenate(rows.rows),
        np.concatenate(rows.columns),
        np.concatenate(rows.values),
        np.array(rows.lower),
        np.array(rows.upper),
        _names(problem, choices),
        x_first,
    )


def _paths(problem: Problem) -> list[list[int]]:
    """Every way from an operator without an incoming stream to one without an outgoing stream."""
    index = {operator.name: number for number, operator in enumerate(problem.operators)}
    after: list[list[int]] = [[] for _ in problem.operators]
    begins = set(range(len(problem.operators)))
    for stream in problem.streams:
        after[index[stream.origin]].append(index[stream.target])
        begins.discard(index[stream.target])
    found, open_ways = [], [[i] for i in sorted(begins)]
    while open_ways:
        way = open_ways.pop()
        if after[way[-1]]:
            open_ways += [[*way, j] for j in after[way[-1]]]
        else:
            found.append(way)
    return found


def _delays_s(problem: Problem, above: Choices, below: Choices) -> Floats:
    """Eq. 3, of every pair of deployments."""
    longest = np.zeros((len(above.members), len(below.members)))
    for p in above.members.T:
        for q in below.members.T:
            there = (p != NOBODY)[:, None] & (q != NOBODY)[None, :]
            longest = np.maximum(longest, np.where(there, problem.network.delay_s[np.ix_(p, q)], 0.0))
    return longest


def _prices(problem: Problem, above: Choices, below: Choices) -> Floats:
    """Eq. 4, of every pair of deployments and one tuple/s."""
    total = np.zeros((len(above.members), len(below.members)))
    pairs = np.zeros_like(total)
    for p in _counted_once(problem, above):
        for q in _counted_once(problem, below):
            there = (p != NOBODY)[:, None] & (q != NOBODY)[None, :]
            total += np.where(there, problem.network.price[np.ix_(p, q)], 0.0)
            pairs += there
    return total / pairs


def _counted_once(problem: Problem, choices: Choices) -> Ints:
    """Hosts by place; where traffic counts per host, one with several replicas stands once."""
    members = choices.members.T.copy()
    if problem.readings.traffic_per_host:
        members[1:][members[1:] == members[:-1]] = NOBODY
    return members


def _names(problem: Problem, choices: Sequence[Choices]) -> list[str]:
    """Letters, digits and a few signs: LP files take no others."""
    plain = [
        [f"{i}_{'_'.join(str(host) for host in row if host != NOBODY)}" for row in one.members]
        for i, one in enumerate(choices)
    ]
    index = {operator.name: number for number, operator in enumerate(problem.operators)}
    names = [f"x_{name}" for one in plain for name in one]
    for stream in problem.streams:
        above, below = plain[index[stream.origin]], plain[index[stream.target]]
        names += [f"y_{u}__{v}" for u in above for v in below]
    return [*names, "r", "t_D"]


class Solved(NamedTuple):
    rows: Ints | None  # of each operator's choices; None: there is none
    value: float
    proven: bool


def solved_by_highs(milp: Milp, *, time_limit_s: float = np.inf) -> Solved:
    """HiGHS on one thread. Its objective is that of a nearly integer solution."""
    from scipy.optimize import Bounds, LinearConstraint
    from scipy.optimize import milp as highs
    from scipy.sparse import csr_array

    columns, rows = len(milp.cost), len(milp.lower)
    matrix = csr_array((milp.values, (milp.rows, milp.columns)), shape=(rows, columns))
    binary = np.concatenate([np.ones(columns - 2), np.zeros(2)])
    options: dict[str, float] = {"mip_rel_gap": 0.0}
    if np.isfinite(time_limit_s):
        options["time_limit"] = float(time_limit_s)
    found = highs(
        _SCALE * milp.cost,
        integrality=binary,
        bounds=Bounds(np.zeros(columns), np.where(binary > 0, 1.0, np.inf)),
        constraints=LinearConstraint(matrix, milp.lower, milp.upper),
        options=options,
    )
    if found.status == _INFEASIBLE:
        return Solved(None, np.inf, True)
    if found.x is None or found.fun is None:
        return Solved(None, np.inf, False)
    chosen = np.array(
        [int(np.argmax(found.x[first:last])) for first, last in pairwise(milp.x_first)], np.int64
    )
    return Solved(chosen, found.fun / _SCALE, found.status == _OPTIMAL)


_SCALE = 1e4  # HiGHS stops when a millionth is left to gain: this makes it a ten-thousandth of a millionth
_OPTIMAL, _INFEASIBLE = 0, 2


_TERMS = 8  # in a line


def as_lp(milp: Milp) -> str:
    """In the LP format, which all solvers read."""
    ranks = np.lexsort((milp.columns, milp.rows))
    ends = np.searchsorted(milp.rows[ranks], np.arange(len(milp.lower) + 1))
    lines = ["Minimize", f" obj: {_terms(milp, np.arange(len(milp.cost)), milp.cost)}", "Subject To"]
    for number, (first, last) in enumerate(pairwise(ends)):
        entries = ranks[first:last]
        left = _terms(milp, milp.columns[entries], milp.values[entries])
        lower, upper = float(milp.lower[number]), float(milp.upper[number])
        if lower == upper:
            lines.append(f" c{number}: {left} = {lower!r}")
        elif np.isfinite(lower):
            lines.append(f" c{number}: {left} >= {lower!r}")
        else:
            lines.append(f" c{number}: {left} <= {upper!r}")
    lines += ["Binary", *(f" {name}" for name in milp.names[:-2]), "End"]
    return "\n".join(lines) + "\n"


def _terms(milp: Milp, columns: Ints, values: Floats) -> str:
    used = [
        (milp.names[column], float(value)) for column, value in zip(columns, values, strict=True) if value
    ]
    terms = [f"{'-' if value < 0 else '+'} {abs(value)!r} {name}" for name, value in used] or ["0 r"]
    # CPLEX reads lines of up to 560 characters.
    return "\n  ".join(" ".join(terms[first : first + _TERMS]) for first in range(0, len(terms), _TERMS))
