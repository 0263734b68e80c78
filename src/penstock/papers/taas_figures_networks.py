"""Figures 18 and 27 of Russo 2023 (TAAS): memory of value functions, and other networks for DQL."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats
from penstock.control.spec import Manager
from penstock.papers.claims import Chart, Claim, Series, Traces
from penstock.papers.taas_figure import (
    OURS,
    PLANNED,
    Effort,
    Figure,
    Measured,
    Point,
    jobs_of,
    label,
    said,
    shown_only,
)
from penstock.perf.deployments import Deployments
from penstock.policy.memory import learned
from penstock.policy.operator.deep_pds import DeepPdsLearner
from penstock.policy.operator.deep_q import DeepQLearner
from penstock.policy.operator.linear_q import LinearQLearner
from penstock.policy.operator.q_learning import QLearner
from penstock.policy.operator.q_learning_pds import PdsLearner
from penstock.policy.rl.encoding import ENCODINGS, encoding
from penstock.policy.rl.network import layer_sizes, weights_in
from penstock.policy.rl.tables import ValueTable
from penstock.policy.rl.worth_having import AdaptiveLearner
from penstock.simulation.one_operator import operator_of
from penstock.simulation.spec import OneOperator

MEGABYTE = 1e6
_FLOAT = 8  # bytes


# Figure 18

REMEMBERING = ("ql", "ql-pds", "ql-fa", "dql", "dql-pds", OURS)
MOST_TYPES = 10
DRAMATIC = 10.0  # "dramatically reduces": by an order of magnitude


class ValueBytes(NamedTuple):
    """Memory of a value function."""

    full: int  # with a value for everything it tells apart
    allocated: int  # tables beyond 256 MB are hashed, and hold what a run can visit


def value_bytes(memory: object, space: Deployments, levels: int) -> ValueBytes:
    """What the value function of a fresh memory takes; experiences and gradients are not part of it."""
    match memory:
        case QLearner():
            return _table(memory.q, space, levels)
        case PdsLearner():
            return _table(memory.values.v, space, levels)
        case LinearQLearner():
            parts = memory.tiles
            arrays = (parts.biases, parts.grid, parts.shifted_grid, parts.stripes)
            size = sum(array.nbytes for array in arrays)
        case DeepQLearner():
            size = memory.q.net.weights.nbytes
        case DeepPdsLearner():
            size = memory.v.net.weights.nbytes
        case AdaptiveLearner():  # it has a model and a plan instead
            size = sum(array.nbytes for array in learned(memory).values())
        case _:
            raise TypeError(f"{type(memory).__name__} has no value function that is known here")
    return ValueBytes(size, size)


def _table(table: ValueTable, space: Deployments, levels: int) -> ValueBytes:
    full = space.replicas.size * levels * table.values.shape[1] * _FLOAT
    return ValueBytes(full, table.values.nbytes + table.keys.nbytes)


def bytes_by_types(policy: str, rates: Floats, most_types: int) -> list[ValueBytes]:
    """For one node type of A, two, ...; 10 replicas."""
    found = []
    for types in range(1, most_types + 1):
        spec = OneOperator(operator_policy=Manager(policy), infrastructure=f"A:{types}", as_published=True)
        known = operator_of(spec, rates, rates, 1)
        memory = spec.operator_policy.for_operator(known).initial()
        found.append(value_bytes(memory, known.deployments, spec.levels))
    return found


Memories = Mapping[str, Sequence[ValueBytes]]  # by policy, for one node type and more


def figure_18(traces: Traces, effort: Effort, most_types: int = MOST_TYPES) -> Figure:
    """Nothing is run: memories are made, measured and dropped."""
    rates = traces.taxi[: effort.slots]

    def memories() -> Memories:
        return {policy: bytes_by_types(policy, rates, most_types) for policy in REMEMBERING}

    held: list[Memories] = []  # made when first asked for

    def once() -> Memories:
        if not held:
            held.append(memories())
        return held[0]

    return Figure(jobs={}, charts=lambda _: charts_18(once()), claims=lambda _: claims_18(once()))


def charts_18(memories: Memories) -> list[Chart]:
    hashed = {
        policy: sizes for policy, sizes in memories.items() if any(one.allocated != one.full for one in sizes)
    }

    def line(name: str, sizes: Sequence[int], group: int) -> Series:
        x = [float(types) for types in range(1, len(sizes) + 1)]
        return Series(name=name, x=x, y=[size / MEGABYTE for size in sizes], group=group)

    groups = {policy: group for group, policy in enumerate(memories)}
    return [
        Chart(
            title="Figure 18: memory of value functions by number of node types",
            note="A, 10 replicas, 30 levels, 8 bytes a value. QL+PDS+ has the table of QL+PDS, DQL+PDS+ the "
            "network of DQL+PDS. Networks: weights alone. Our policy has no value function: all it learns.",
            x_title="node types",
            y_title="MB",
            series=[
                *(
                    line(label(policy), [one.full for one in sizes], groups[policy])
                    for policy, sizes in memories.items()
                ),
                *(
                    line(f"{policy}, as allocated here", [one.allocated for one in sizes], groups[policy])
                    for policy, sizes in hashed.items()
                ),
            ],
            log_y=True,
            whole_x=True,
        )
    ]


def magnitude(size: float) -> str:
    """As one says it: tens of megabytes."""
    for unit, name in ((1e9, "gigabytes"), (1e6, "megabytes"), (1e3, "kilobytes"), (1.0, "bytes")):
        if size >= unit:
            amount = size / unit
            words = "hundreds of " if amount >= 100 else "tens of " if amount >= 10 else ""
            return f"{words}{name}"
    return "nothing"


def claims_18(memories: Memories) -> list[Claim]:
    section = "sec. 6.2.2"
    most = len(memories["ql"])

    def full(policy: str, types: int) -> int:
        return memories[policy][types - 1].full

    growth = {policy: full(policy, most) / full(policy, 1) for policy in ("ql", "ql-pds", "ql-fa", "dql")}
    saved = min(full("ql", types) / full("ql-fa", types) for types in range(min(3, most), most + 1))
    claims = [
        said(
            "figure-18/memory of tables with more node types",
            section,
            "grows significantly",
            min(growth["ql"], growth["ql-pds"]) >= DRAMATIC * growth["dql"],
            otherwise="hardly grows",
            number=growth["ql-pds"],
            note=f"{most} types over one: QL {growth['ql']:,.0f}, QL+PDS {growth['ql-pds']:,.0f}, "
            f"linear {growth['ql-fa']:,.0f}, DQL {growth['dql']:,.0f} times; judged by {DRAMATIC:g} x DQL's",
        ),
        said(
            f"figure-18/QL+PDS+ with {most} types",
            section,
            "tens of megabytes",
            magnitude(full("ql-pds", most)) == "tens of megabytes",
            otherwise=magnitude(full("ql-pds", most)),
            number=full("ql-pds", most) / MEGABYTE,
            note=f"{full('ql-pds', most) / MEGABYTE:.1f} MB; QL, with a value for each action, would take "
            f"{full('ql', most) / MEGABYTE:.0f} MB",
        ),
        said(
            "figure-18/linear beside QL's table",
            section,
            "dramatically reduces",
            saved >= DRAMATIC,
            otherwise="does not",
            number=saved,
            note=f"QL's table over the linear weights, from three types on at least {saved:.1f} times; "
            f"judged by {DRAMATIC:g} times",
        ),
    ]
    for policy, table in (("dql", "ql"), ("dql-pds", "ql-pds"), (OURS, "ql-pds")):
        ratio = full(policy, most) / full(table, most)
        claims.append(
            shown_only(
                f"figure-18/{policy} over {table} with {most} types",
                "ours",
                None,
                ratio,
                f"{ratio:.2g}",
                f"{full(policy, most) / MEGABYTE:.3g} MB",
            )
        )
    return claims


# Figure 27

TYPES = (3, 6, 10)
HIDDEN = (1, 2, 3)
LARGE_FITS = 3  # node types; with more it was not feasible, says the paper
BEST, KEPT = "large", "reduced2"
SIGNIFICANT = 0.05
_BESIDE = (PLANNED, OURS)


def network_at(types: int, name: str, hidden: int) -> str:
    return f"A:{types}, {name}, {hidden} hidden"


def tried(types: int) -> list[str]:
    """The encodings tried with so many node types."""
    return [name for name in ENCODINGS if name != BEST or types <= LARGE_FITS]


def figure_27(traces: Traces, effort: Effort) -> Figure:
    rates = traces.taxi[: effort.slots]

    def spec(policy: Manager, types: int) -> OneOperator:
        return OneOperator(operator_policy=policy, infrastructure=f"A:{types}", as_published=True)

    networks = {
        Point(network_at(types, name, hidden), "dql"): jobs_of(
            spec(Manager("dql", {"encoding": name, "hidden": hidden}), types),
            range(1, effort.network_seeds + 1),
            rates,
            None,
        )
        for types in TYPES
        for name in tried(types)
        for hidden in HIDDEN
    }
    beside = {
        Point(f"A:{types}", policy): jobs_of(
            spec(Manager(policy), types), effort.seeds_of(policy), rates, traces.taxi_last_month
        )
        for types in TYPES
        for policy in _BESIDE
    }
    sizes = weight_bytes(rates)
    return Figure(
        jobs={**networks, **beside},
        charts=partial(charts_27, sizes=sizes),
        claims=partial(claims_27, sizes=sizes),
    )


Sizes = Mapping[tuple[int, str], int]  # bytes of weights by node types and encoding


def weight_bytes(rates: Floats) -> Sizes:
    """Weights and biases of DQL's three-layer network, whether or not it could be allocated."""
    found = {}
    for types in TYPES:
        spec = OneOperator(operator_policy=Manager("dql"), infrastructure=f"A:{types}", as_published=True)
        problem = operator_of(spec, rates, rates, 1).problem
        for name in ENCODINGS:
            sizes = layer_sizes(encoding(problem, name).inputs, HIDDEN[-1], 2 * types + 1)
            found[types, name] = _FLOAT * weights_in(sizes)
    return found


def charts_27(results: Measured, sizes: Sizes) -> list[Chart]:
    def dql(types: int, name: str, hidden: int) -> float | None:
        point = Point(network_at(types, name, hidden), "dql")
        return results[point].cost if point in results else None

    costs = [
        Chart(
            title=f"Figure 27a: average cost of DQL by encoding and hidden layers, {types} node types",
            note="Taxi, A, 10 replicas, as published; means over seeds. The planner and our policy have no "
            "network and are not in the paper's figure.",
            x_title="hidden layers",
            y_title="average cost",
            series=[
                *(
                    Series(
                        name=name,
                        x=[str(hidden) for hidden in HIDDEN],
                        y=[dql(types, name, hidden) for hidden in HIDDEN],
                    )
                    for name in tried(types)
                ),
                *(
                    Series(
                        name=label(policy),
                        x=[str(hidden) for hidden in HIDDEN],
                        y=[results[Point(f"A:{types}", policy)].cost] * len(HIDDEN),
                    )
                    for policy in _BESIDE
                ),
            ],
            bars=True,
        )
        for types in TYPES
    ]
    memory = Chart(
        title="Figure 27b: memory of DQL's weights by encoding, three hidden layers",
        note="8 bytes a weight; `large` beyond three types is what it would take (refused above 256 MB).",
        x_title="node types",
        y_title="MB",
        series=[
            Series(
                name=name,
                x=[str(types) for types in TYPES],
                y=[sizes[types, name] / MEGABYTE for types in TYPES],
            )
            for name in ENCODINGS
        ],
        bars=True,
        log_y=True,
    )
    return [*costs, memory]


def chance_of_equals(groups: Sequence[Sequence[float]]) -> float:
    """How often groups with one mean would lie as far apart by chance (one-way analysis of variance)."""
    from scipy.special import fdtrc

    every = np.concatenate([np.asarray(group) for group in groups])
    between = sum(len(group) * (np.mean(group) - every.mean()) ** 2 for group in groups)
    within = sum(float(((np.asarray(group) - np.mean(group)) ** 2).sum()) for group in groups)
    free, left = len(groups) - 1, every.size - len(groups)
    if left < 1:
        return 1.0  # a single run of each tells nothing
    if within == 0:
        return 0.0 if between > 0 else 1.0
    return float(fdtrc(free, left, (float(between) / free) / (within / left)))


def claims_27(results: Measured, sizes: Sizes) -> list[Claim]:
    section = "appendix B.3"

    def runs(types: int, name: str, hidden: int) -> tuple[float, ...]:
        return results[Point(network_at(types, name, hidden), "dql")].costs

    def mean(types: int, names: Sequence[str], layers: Sequence[int]) -> float:
        return float(np.mean([np.mean(runs(types, name, hidden)) for name in names for hidden in layers]))

    claims = []
    for types in TYPES:
        groups = [runs(types, name, hidden) for name in tried(types) for hidden in HIDDEN]
        chance = chance_of_equals(groups)
        means = [float(np.mean(group)) for group in groups]
        claims.append(
            said(
                f"figure-27/{types} types/difference across configurations",
                section,
                "not significant",
                chance >= SIGNIFICANT,
                otherwise="significant",
                number=chance,
                note=f"{len(groups)} configurations cost {min(means):.4f} to {max(means):.4f}; equals would "
                f"differ as much in {100 * chance:.0f} of 100 cases (analysis of variance)",
            )
        )
    by_layers = {
        hidden: float(np.mean([mean(types, tried(types), [hidden]) for types in TYPES])) for hidden in HIDDEN
    }
    fewest = min(by_layers, key=by_layers.__getitem__)
    by_encoding = {name: mean(LARGE_FITS, [name], HIDDEN) for name in tried(LARGE_FITS)}
    cheapest = min(by_encoding, key=by_encoding.__getitem__)
    largest = max(ENCODINGS, key=lambda name: sizes[LARGE_FITS, name])
    spread = {
        name: float(np.std([mean(types, [name], [hidden]) for types in TYPES for hidden in HIDDEN]))
        for name in ENCODINGS
        if name != BEST
    }
    steadiest = min(spread, key=spread.__getitem__)
    return [
        *claims,
        said(
            "figure-27/hidden layers of least cost",
            section,
            "three",
            fewest == HIDDEN[-1],
            otherwise={1: "one", 2: "two"}.get(fewest, ""),
            number=by_layers[HIDDEN[-1]] / min(by_layers[hidden] for hidden in HIDDEN[:-1]),
            note="minor advantages; means over encodings and types: "
            + ", ".join(f"{hidden}: {cost:.4f}" for hidden, cost in by_layers.items()),
        ),
        said(
            f"figure-27/{LARGE_FITS} types/encoding of least cost",
            section,
            BEST,
            cheapest == BEST,
            otherwise=cheapest,
            number=by_encoding[BEST] / min(cost for name, cost in by_encoding.items() if name != BEST),
            note="means over layers: "
            + ", ".join(f"{name} {cost:.4f}" for name, cost in by_encoding.items()),
        ),
        said(
            f"figure-27/{LARGE_FITS} types/encoding that takes most memory",
            section,
            BEST,
            largest == BEST,
            otherwise=largest,
            number=sizes[LARGE_FITS, BEST] / MEGABYTE,
            note=", ".join(f"{name} {sizes[LARGE_FITS, name] / MEGABYTE:.3g} MB" for name in ENCODINGS),
        ),
        said(
            "figure-27/most consistent of the other encodings",
            section,
            KEPT,
            steadiest == KEPT,
            otherwise=steadiest,
            number=spread[KEPT] / min(spread.values()),
            note="standard deviation over types and layers: "
            + ", ".join(f"{name} {deviation:.4f}" for name, deviation in spread.items()),
        ),
    ]
