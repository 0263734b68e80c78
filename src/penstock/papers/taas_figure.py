"""What the figures of Russo 2023 (TAAS) have in common: runs, what is kept of them, and what a text claims.

A figure is a value: what to run, and how charts and claims come from what was measured. Nothing
is printed in the paper but its text, so a claim is a sentence of it, and the note says by which
measure of ours it was judged.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints
from penstock.control.spec import Manager
from penstock.papers.claims import Chart, Claim, Findings, Progress, Series
from penstock.papers.taas_tables import TAXI_SLOTS
from penstock.policy.registry import Level
from penstock.simulation.play import Job
from penstock.simulation.result import SimulationResult
from penstock.simulation.spec import OneOperator

TABULAR = ("ql", "ql-pds", "ql-pds-plus")
LINEAR = "ql-fa"
DEEP = ("dql", "dql-pds", "dql-pds-plus")
OURS, PLANNED = "adaptive", "vi"
LEARNERS = (*TABULAR, LINEAR, *DEEP)  # the paper's
BESIDE = (*DEEP, PLANNED, OURS)  # in every figure, drawn in the paper or not
_CURVE_POINTS = 200


class Point(NamedTuple):
    """What was run: a policy somewhere in a figure."""

    where: str
    policy: str


class Mean(NamedTuple):
    """What is kept of a policy's runs: means over seeds."""

    cost: float
    violations_pct: float
    reconfigurations_pct: float
    resources: float
    costs: tuple[float, ...] = ()  # of each seed
    so_far: tuple[float, ...] = ()  # mean cost since the start, at the figure's marks


Measured = Mapping[Point, Mean]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is run."""

    slots: int = TAXI_SLOTS
    seeds: int = 5  # of policies that draw at random
    deep_seeds: int = 1  # 400,001 slots of one seed take 5 to 120 s
    network_seeds: int = 3  # of Figure 27, where differences are judged against chance
    change_at: int = 200_000
    again_from: int = 262_500  # where the doubled load is taken from

    def seeds_of(self, policy: str) -> range:
        if not Manager(policy).entry(Level.OPERATOR).traits.chance:
            return range(1, 2)
        return range(1, (self.deep_seeds if policy in DEEP else self.seeds) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What to run for a figure, and what comes of it."""

    jobs: Mapping[Point, tuple[Job, ...]]  # a job per seed
    charts: Callable[[Measured], list[Chart]]
    claims: Callable[[Measured], list[Claim]]
    marks: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # slots to keep the mean at


def findings(figures: Iterable[Figure], threads: int, progress: Progress) -> Findings:
    """Run all jobs, figure by figure."""
    listed = list(figures)
    # A step for each run and one for what is made of them: a figure may need none.
    progress.of(sum(1 + sum(map(len, figure.jobs.values())) for figure in listed))
    charts: list[Chart] = []
    claims: list[Claim] = []
    for figure in listed:
        results = measured(figure, threads, progress)
        charts += figure.charts(results)
        claims += figure.claims(results)
        progress.advance()
    return Findings(claims=claims, charts=charts)


def measured(figure: Figure, threads: int, progress: Progress) -> dict[Point, Mean]:
    """The means over seeds."""
    points = [point for point, seeds in figure.jobs.items() for _ in seeds]
    marks = figure.marks

    def kept(result: SimulationResult) -> Mean:
        so_far: tuple[float, ...] = ()
        if result.history is not None:
            so_far = tuple(float(mean) for mean in np.cumsum(result.history.cost)[marks - 1] / marks)
        return Mean(
            result.avg_cost,
            result.violations_pct,
            result.reconfigurations_pct,
            result.resource_cost,
            (result.avg_cost,),
            so_far,
        )

    runs = progress.kept.measured(
        [job for seeds in figure.jobs.values() for job in seeds],
        Mean,
        kept,
        named=f"at slots {marks.tolist()}",
        threads=threads,
        with_history=marks.size > 0,
        done=progress.advance,
    )
    by_point: dict[Point, list[Mean]] = {}
    for point, run in zip(points, runs, strict=True):
        by_point.setdefault(point, []).append(run)
    return {point: mean_of(of) for point, of in by_point.items()}


def mean_of(runs: Sequence[Mean]) -> Mean:
    """The mean of several seeds' runs."""
    numbers = [float(np.mean([run[column] for run in runs])) for column in range(4)]
    curves = zip(*(run.so_far for run in runs), strict=True)
    return Mean(
        numbers[0],
        numbers[1],
        numbers[2],
        numbers[3],
        tuple(cost for run in runs for cost in run.costs),
        tuple(float(np.mean(at)) for at in curves),
    )


def jobs_of(
    spec: OneOperator, seeds: Iterable[int], rates: Floats, training: Floats | None
) -> tuple[Job, ...]:
    """The same for every seed."""
    return tuple((replace(spec, seed=seed), rates, training) for seed in seeds)


def marks_of(slots: int, *others: int) -> Ints:
    """Slots to keep the mean cost at: evenly spread, the last one, and these."""
    spread = np.linspace(max(slots // _CURVE_POINTS, 1), slots, min(_CURVE_POINTS, slots))
    return np.unique(np.concatenate([spread.astype(np.int64), np.array(others, dtype=np.int64)]))


# Charts


def label(policy: str) -> str:
    """As it is called in a legend."""
    return {OURS: f"{OURS} (ours)", PLANNED: f"{PLANNED} (DP)"}.get(policy, policy)


def bars(
    results: Measured,
    places: Sequence[str],
    policies: Iterable[str],
    value: Callable[[Mean], float] = lambda mean: mean.cost,
) -> list[Series]:
    """A colour for each policy, a group of bars for each place; gaps where it was not run."""
    return [
        Series(
            name=label(policy),
            x=places,
            y=[
                value(results[point]) if (point := Point(where, policy)) in results else None
                for where in places
            ],
        )
        for policy in policies
    ]


def lines(results: Measured, where: str, policies: Iterable[str], marks: Ints) -> list[Series]:
    """The mean cost so far, a line for each policy."""
    x = [float(mark) for mark in marks]
    return [
        Series(name=label(policy), x=x, y=list(results[Point(where, policy)].so_far)) for policy in policies
    ]


# Claims


def said(
    name: str,
    section: str,
    says: str,
    holds: bool,
    *,
    otherwise: str,
    number: float,
    note: str,
    claimed: bool = True,
) -> Claim:
    """A sentence of the paper beside what we found; `otherwise` is what it would have to say."""
    return Claim(
        id=name,
        source=f"Russo 2023, {section}",
        printed=says,
        measured=number,
        shown=says if holds else otherwise,
        tolerance=0.0 if claimed else None,
        note=note,
    )


def below(name: str, section: str, limit: str, number: float, note: str) -> Claim:
    """A percentage that the paper says is below a limit."""
    return Claim(
        id=name,
        source=f"Russo 2023, {section}",
        printed=f"<{limit}",
        measured=number,
        shown=f"{number:.2f}",
        tolerance=0.0,
        note=note,
    )


def shown_only(name: str, source: str, printed: str | None, number: float, shown: str, note: str) -> Claim:
    """Two numbers side by side, nothing claimed; None where nothing is printed."""
    return Claim(
        id=name, source=source, printed=printed, measured=number, shown=shown, tolerance=None, note=note
    )


def in_cells(name: str, section: str, says: str, cells: Mapping[str, bool], note: str) -> Claim:
    """Something the paper says of all these cells."""
    held = sum(cells.values())
    failing = ", ".join(cell for cell, holds in cells.items() if not holds)
    return said(
        name,
        section,
        says,
        held == len(cells),
        otherwise=f"in {held} of {len(cells)} cells",
        number=float(held),
        note=f"{note}; cells that hold: {held} of {len(cells)}" + (f", not {failing}" if failing else ""),
    )
