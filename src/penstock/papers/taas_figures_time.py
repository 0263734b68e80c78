"""Figures 23, 24 and 25 of Russo 2023 (TAAS): the mean cost so far, slot by slot."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints
from penstock.control.spec import Manager
from penstock.papers.claims import Chart, Claim, Traces
from penstock.papers.taas_figure import (
    DEEP,
    LEARNERS,
    LINEAR,
    OURS,
    PLANNED,
    TABULAR,
    Effort,
    Figure,
    Measured,
    Point,
    jobs_of,
    lines,
    marks_of,
    said,
    shown_only,
)
from penstock.simulation.presets import WORKLOADS
from penstock.simulation.spec import OneOperator, Shift

CLAIMED, BESIDES = "A:3", "B:3"  # the text does not say which infrastructure is drawn
FAR = 2.0  # times the cost of the planner: "far from" it, or else "close to" it


# Figure 23

CONVERGING = (*LEARNERS, PLANNED, OURS)


def figure_23(traces: Traces, effort: Effort) -> Figure:
    rates = traces.taxi[: effort.slots]
    marks = marks_of(rates.size)
    return Figure(
        jobs={
            Point(where, policy): jobs_of(
                OneOperator(operator_policy=Manager(policy), infrastructure=where, as_published=True),
                effort.seeds_of(policy),
                rates,
                traces.taxi_last_month,
            )
            for where in (CLAIMED, BESIDES)
            for policy in CONVERGING
        },
        charts=partial(charts_23, marks=marks),
        claims=claims_23,
        marks=marks,
    )


def charts_23(results: Measured, marks: Ints) -> list[Chart]:
    sides = (("tabular", TABULAR), ("function approximation", (LINEAR, *DEEP)))
    return [
        Chart(
            title=f"Figure 23: cumulative average cost, {where}, {side}",
            note="Taxi, 10 replicas, as published; means over seeds. Our policy is not in the paper.",
            x_title="slots",
            y_title="average cost so far",
            series=lines(results, where, (*policies, PLANNED, OURS), marks),
            log_y=True,
        )
        for where in (CLAIMED, BESIDES)
        for side, policies in sides
    ]


def claims_23(results: Measured) -> list[Claim]:
    return [claim for where in (CLAIMED, BESIDES) for claim in _claims_23(results, where)]


def _claims_23(results: Measured, where: str) -> Iterator[Claim]:
    section = "appendix B.2"
    claimed = where == CLAIMED
    ends = {policy: results[Point(where, policy)].cost for policy in CONVERGING}
    over = {policy: cost / ends[PLANNED] for policy, cost in ends.items()}
    yield said(
        f"figure-23/{where}/QL at the end",
        section,
        "far from the optimal cost",
        over["ql"] >= FAR,
        otherwise="close to it",
        number=over["ql"],
        note=f"{over['ql']:.2f} times the planner's {ends[PLANNED]:.4f}; judged by {FAR:g} times",
        claimed=claimed,
    )
    dearer = max(ends[policy] for policy in TABULAR[1:]) / ends["ql"]
    yield said(
        f"figure-23/{where}/tabular PDS over QL",
        section,
        "definitely better",
        dearer < 1,
        otherwise="not better",
        number=dearer,
        note="the dearer of QL+PDS and QL+PDS+ over QL, at the end",
        claimed=claimed,
    )
    pairs = ((LINEAR, "ql"), *zip(DEEP, TABULAR, strict=True))
    better = [approximate for approximate, table in pairs if ends[approximate] < ends[table]]
    yield said(
        f"figure-23/{where}/function approximation beside tables",
        section,
        "generally better",
        2 * len(better) > len(pairs),
        otherwise=f"better in {len(better)} of {len(pairs)}",
        number=float(len(better)),
        note=f"each beside the tabular form of the same algorithm; cheaper: {', '.join(better) or 'none'}",
        claimed=claimed,
    )
    far = [policy for policy in (LINEAR, *DEEP) if over[policy] >= FAR]
    listed = ", ".join(f"{policy} {over[policy]:.2f}" for policy in (LINEAR, *DEEP))
    yield said(
        f"figure-23/{where}/function approximation that does not end close to DP",
        section,
        "dql",
        far == ["dql"],
        otherwise=", ".join(far) or "none",
        number=float(len(far)),
        note=f"times the planner's cost: {listed}; judged by {FAR:g} times",
        claimed=claimed,
    )
    yield shown_only(
        f"figure-23/{where}/{OURS} over DP at the end",
        "ours",
        None,
        over[OURS],
        f"{over[OURS]:.2f}",
        "average cost, what it takes to learn included",
    )


# Figures 24 and 25

THRESHOLDS = ("threshold-c", "threshold-s")
CHANGING = (*THRESHOLDS, *LEARNERS, PLANNED, OURS)
PRICE_FACTOR = 100.0


class Reading(NamedTuple):
    """What the text leaves open about a change."""

    name: str
    infrastructure: str
    claimed: bool
    levels_to_the_top: bool = False  # levels reach the highest rate, not Taxi's usual 650/s


LOADS = (
    Reading("A:3", "A:3", True),
    Reading("A:3, levels up to the highest rate", "A:3", False, levels_to_the_top=True),
    Reading("B:3", "B:3", False),
)
PRICES = (Reading("A:3", "A:3", True), Reading("B:3", "B:3", False))


def doubling(taxi: Floats, effort: Effort) -> Floats:
    """The published `profile_changing`: the first slots, then twice the rates from a later one on."""
    return np.concatenate([taxi[: effort.change_at], 2 * taxi[effort.again_from :]])


def figure_24(traces: Traces, effort: Effort) -> Figure:
    rates = doubling(traces.taxi, effort)
    top = float(rates.max())

    def spec(reading: Reading, policy: str) -> OneOperator:
        return OneOperator(
            operator_policy=Manager(policy),
            infrastructure=reading.infrastructure,
            max_rate=top if reading.levels_to_the_top else WORKLOADS["taxi"].max_rate,
            as_published=True,
        )

    return _changed(
        "Figure 24: average cost, the load doubles", LOADS, spec, rates, traces, effort, claims_24
    )


def figure_25(traces: Traces, effort: Effort) -> Figure:
    def spec(reading: Reading, policy: str) -> OneOperator:
        return OneOperator(
            operator_policy=Manager(policy),
            infrastructure=reading.infrastructure,
            as_published=True,
            price_shift=Shift(slot=effort.change_at, factor=PRICE_FACTOR),
        )

    title = f"Figure 25: average cost, all types but the last become {PRICE_FACTOR:g} times as dear"
    return _changed(title, PRICES, spec, traces.taxi[: effort.slots], traces, effort, claims_25)


class Halves(NamedTuple):
    """Mean costs before and after a change, and over all."""

    before: float
    after: float
    all: float


def _changed(
    title: str,
    readings: tuple[Reading, ...],
    spec: Callable[[Reading, str], OneOperator],
    rates: Floats,
    traces: Traces,
    effort: Effort,
    claims: Callable[[Reading, dict[str, Halves]], list[Claim]],
) -> Figure:
    marks = marks_of(rates.size, effort.change_at)

    def charts(results: Measured) -> list[Chart]:
        return [
            Chart(
                title=f"{title}, {reading.name}",
                note=f"From slot {effort.change_at:,} on; means over seeds. DP planned off-line, with the "
                "last month of Taxi and the first prices. Our policy is not in the paper's figure.",
                x_title="slots",
                y_title="average cost so far",
                series=lines(results, reading.name, CHANGING, marks),
                log_y=True,
            )
            for reading in readings
        ]

    def all_claims(results: Measured) -> list[Claim]:
        return [
            claim
            for reading in readings
            for claim in claims(
                reading,
                {
                    policy: halves(results[Point(reading.name, policy)].so_far, marks, effort.change_at)
                    for policy in CHANGING
                },
            )
        ]

    return Figure(
        jobs={
            Point(reading.name, policy): jobs_of(
                spec(reading, policy), effort.seeds_of(policy), rates, traces.taxi_last_month
            )
            for reading in readings
            for policy in CHANGING
        },
        charts=charts,
        claims=all_claims,
        marks=marks,
    )


def halves(so_far: tuple[float, ...], marks: Ints, change_at: int) -> Halves:
    """Means before and after, from the mean so far at the change and at the end."""
    slots = int(marks[-1])
    before = so_far[int(np.searchsorted(marks, change_at))]
    return Halves(before, (so_far[-1] * slots - before * change_at) / (slots - change_at), so_far[-1])


def claims_24(reading: Reading, costs: dict[str, Halves]) -> list[Claim]:
    section, where = "appendix B.2.1", f"figure-24/{reading.name}"
    others = [policy for policy in CHANGING if policy not in (PLANNED, OURS)]
    planned = costs[PLANNED]
    first = min(others, key=lambda policy: costs[policy].before)
    last = max(others, key=lambda policy: costs[policy].all)
    worse = [policy for policy in others if costs[policy].after >= planned.after]
    worst = max(costs[policy].after for policy in others) / planned.after
    return [
        said(
            f"{where}/lowest cost before the change",
            section,
            "DP",
            planned.before <= costs[first].before,
            otherwise=first,
            number=costs[first].before / planned.before,
            note=f"DP {planned.before:.4f}, {first} {costs[first].before:.4f}",
            claimed=reading.claimed,
        ),
        said(
            f"{where}/highest cumulative cost in the end",
            section,
            "DP",
            planned.all >= costs[last].all,
            otherwise=last,
            number=costs[last].all / planned.all,
            note=f"DP {planned.all:.4f}, {last} {costs[last].all:.4f}",
            claimed=reading.claimed,
        ),
        said(
            f"{where}/threshold and RL after the change",
            section,
            "acceptable",
            not worse,
            otherwise=f"not {', '.join(worse)}",
            number=worst,
            note=f"mean cost since the change below DP's {planned.after:.4f}: {_listed(costs)}",
            claimed=reading.claimed,
        ),
        _ours(where, costs),
    ]


def claims_25(reading: Reading, costs: dict[str, Halves]) -> list[Claim]:
    section, where = "appendix B.2.1", f"figure-25/{reading.name}"
    best = min(costs[policy].after for policy in LEARNERS)
    claims = [
        said(
            f"{where}/{policy} after the change",
            section,
            "unacceptable",
            costs[policy].after >= FAR * best,
            otherwise="acceptable",
            number=costs[policy].after / best,
            note=f"mean cost since the change {costs[policy].after:.4f}; judged by {FAR:g} times that of the "
            f"best learner, {best:.4f}",
            claimed=reading.claimed,
        )
        for policy in (PLANNED, *THRESHOLDS)
    ]
    least = min(costs[policy].after for policy in (PLANNED, *THRESHOLDS))
    stuck = [policy for policy in LEARNERS if costs[policy].after >= least]
    return [
        *claims,
        said(
            f"{where}/RL after the change",
            section,
            "manage to adapt",
            not stuck,
            otherwise=f"not {', '.join(stuck)}",
            number=max(costs[policy].after for policy in LEARNERS) / least,
            note=f"mean cost since the change below that of DP and thresholds: {_listed(costs)}",
            claimed=reading.claimed,
        ),
        _ours(where, costs),
    ]


def _listed(costs: dict[str, Halves]) -> str:
    return ", ".join(f"{policy} {cost.after:.4f}" for policy, cost in costs.items())


def _ours(where: str, costs: dict[str, Halves]) -> Claim:
    best = min(costs[policy].after for policy in CHANGING if policy != OURS)
    ratio = costs[OURS].after / best
    return shown_only(
        f"{where}/{OURS} over the best other since the change",
        "ours",
        None,
        ratio,
        f"{ratio:.2f}",
        f"{costs[OURS].after:.4f}, the best other {best:.4f}",
    )
