"""Tables 2-5 of Russo 2023 (TAAS), every row but the deep ones, and the reference results beside them."""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats
from penstock.control.spec import Manager
from penstock.papers.claims import Claim, Progress, Traces, less_than, shown_like
from penstock.simulation.play import Job
from penstock.simulation.presets import WORKLOADS
from penstock.simulation.result import SimulationResult
from penstock.simulation.spec import OneOperator

TAXI_SLOTS = 400_001  # the published runs stop there, well before the end of the year
COLUMNS = ("avg_cost", "violations_pct", "reconfigurations_pct", "resource_cost")

SETTINGS = (
    "Taxi: the first 400,001 slots, service rate 180/s, top rate 650/s. Tweets: all 242,960 slots, service "
    "rate 1620/s (the paper says 1600), top rate 9000/s. 30 levels, 50 ms, weights .6/.2/.2, gamma .99, "
    "step size 1.0 falling by 2 % every 10 steps to .1, exploration 1.0 falling by 5 % every step to .01.",
    "Threshold rows: U = .75 and beta = .75; the text says U = .7.",
    "The tables mix two versions of the code. The first replica is of the first node type in all rows of A, "
    "in B with ten types and for all learners; in B with three and six types the threshold rows start with "
    "the cheapest (TB-C) or fastest (TB-S) type.",
    "Rows of B with ten types were computed with older speedups (1, .05, 7, .1, .2, .4, .8, 2, 5, 10), not "
    "with Table 1's.",
    "Costs are normalised by the largest speedup of all ten types whatever the number offered; resources are "
    "charged before the decision of the slot; QL+PDS blends in the value of the state before the decision, "
    "not of the one after it as eq. (10) says.",
    "QL+PDS+ is given a randomly wrong model, and the authors' draws are not known: each note says "
    "how far apart two means of ten runs may lie. By chance alone one or two of 24 cells would be further "
    "apart than that; four are outside the tolerance, so chance may not be all of it.",
)

_EXACT, _REPORTED = 0.0, None
_HALF_A_DIGIT = 0.00005  # of what the published code gives to four digits


@dataclass(frozen=True, slots=True)
class Row:
    """How a row of the tables is reproduced."""

    policy: str
    seeds: int
    tolerance: dict[str, float | None]  # of the average cost, by infrastructure
    every_column: bool  # otherwise the tolerance applies to the average cost only
    note: str


ROWS: dict[str, Row] = {
    "TB-C": Row("threshold-c", 1, {"A": _EXACT, "B": _EXACT}, True, ""),
    "TB-S": Row("threshold-s", 1, {"A": _EXACT, "B": _EXACT}, True, ""),
    "QL": Row("ql", 10, {"A": 0.02, "B": 0.02}, False, "mean of 10 seeds"),
    "QL+PDS": Row("ql-pds", 1, {"A": _EXACT, "B": _EXACT}, True, ""),
    "QL+PDS+": Row(
        "ql-pds-plus",
        10,
        {"A": 0.05, "B": 0.15},
        False,
        "mean of 10 seeds, each with its own wrong model; the draws behind the printed mean are unknown",
    ),
    "QL+FA": Row(
        "ql-fa",
        10,
        {"A": _REPORTED, "B": _REPORTED},
        False,
        "mean of 10 seeds; a first step size of 1 on three or four weights at once overshoots, and seeds end "
        "up far apart: the mean of ten says little (--update equation learns with .1 and does not)",
    ),
}


def rates_of(traces: Traces, name: str) -> Floats:
    """The slots the published runs used."""
    return traces.taxi[:TAXI_SLOTS] if name == "taxi" else traces.tweets


class Outcome(NamedTuple):
    """The columns of the tables."""

    avg_cost: float
    violations_pct: float
    reconfigurations_pct: float
    resource_cost: float


def outcome_of(result: SimulationResult) -> Outcome:
    return Outcome(result.avg_cost, result.violations_pct, result.reconfigurations_pct, result.resource_cost)


@dataclass(frozen=True, slots=True)
class Pending:
    """Claims that wait for these jobs."""

    jobs: tuple[Job, ...]
    claims: Callable[[Sequence[Outcome]], list[Claim]]


def reproduce(traces: Traces, threads: int, progress: Progress) -> list[Claim]:
    """Run everything and compare."""
    return settled([*table_rows(traces, ROWS), *_reference_results(traces)], threads, progress)


def settled(pending: Sequence[Pending], threads: int, progress: Progress) -> list[Claim]:
    """All claims, once their jobs have run."""
    jobs = [job for item in pending for job in item.jobs]
    progress.of(len(jobs))
    outcomes = iter(progress.kept.measured(jobs, Outcome, outcome_of, threads=threads, done=progress.advance))
    return [claim for item in pending for claim in item.claims([next(outcomes) for _ in item.jobs])]


def printed_rows() -> list[dict[str, str]]:
    """The tables as printed, one row per infrastructure."""
    text = files("penstock.papers").joinpath("published/taas-2023-tables-2-5.tsv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t"))


def table_rows(traces: Traces, rows: Mapping[str, Row]) -> Iterator[Pending]:
    """Every printed row of these policies."""
    for printed in printed_rows():
        row = rows.get(printed["policy"])
        if row is None:
            continue
        workload = WORKLOADS[printed["trace"]]
        jobs: tuple[Job, ...] = tuple(
            (
                OneOperator(
                    operator_policy=Manager(row.policy),
                    infrastructure=f"{printed['infrastructure']}:{printed['node_types']}",
                    max_replicas=int(printed["max_replicas"]),
                    service_rate=workload.service_rate,
                    max_rate=workload.max_rate,
                    seed=seed,
                    as_published=True,
                ),
                rates_of(traces, printed["trace"]),
                None,
            )
            for seed in range(1, row.seeds + 1)
        )
        yield Pending(jobs, _row_claims(printed, row))


def _row_claims(printed: dict[str, str], row: Row) -> Callable[[Sequence[Outcome]], list[Claim]]:
    table, infrastructure, types = printed["table"], printed["infrastructure"], printed["node_types"]

    def claims(outcomes: Sequence[Outcome]) -> list[Claim]:
        note = _note(printed, row, outcomes)
        return [
            Claim(
                id=f"table-{table}/{infrastructure}{types}/{printed['policy']}/{column}",
                source=f"Russo 2023, Table {table}",
                printed=printed[column],
                measured=(measured := float(np.mean([getattr(outcome, column) for outcome in outcomes]))),
                shown=shown_like(printed[column], measured),
                tolerance=row.tolerance[infrastructure] if row.every_column or column == "avg_cost" else None,
                note=note,
            )
            for column in COLUMNS
        ]

    return claims


def _note(printed: dict[str, str], row: Row, outcomes: Sequence[Outcome]) -> str:
    notes = [row.note] if row.note else []
    if len(outcomes) > 1:
        costs = [outcome.avg_cost for outcome in outcomes]
        # What the mean of as many other seeds, the authors' for instance, may differ by.
        spread = 1.96 * np.sqrt(2) * np.std(costs, ddof=1) / np.sqrt(len(costs)) / np.mean(costs)
        notes.append(f"two such means are within {100 * spread:.1f} % of each other in 95 of 100 cases")
    if printed["infrastructure"] == "B" and printed["node_types"] == "10":
        notes.append("speedups of B before Table 1 (7 and 10 instead of 30 and 7)")
    return "; ".join(notes)


def _reference_results(traces: Traces) -> Iterator[Pending]:
    """What the published code yields where the paper shows only a figure: Taxi, 10 replicas."""
    listed = (
        (
            "A:1/VI",
            ".0329",
            "P from the last month",
            OneOperator(operator_policy=Manager("vi"), infrastructure="A:1", as_published=True),
        ),
        (
            "A:3/VI",
            ".0329",
            "P from the last month",
            OneOperator(operator_policy=Manager("vi"), infrastructure="A:3", as_published=True),
        ),
        (
            "B:3/VI",
            ".0028",
            "P from the last month",
            OneOperator(operator_policy=Manager("vi"), infrastructure="B:3", as_published=True),
        ),
        (
            "A:1/model-based",
            ".0336",
            "with the published slip of deciding at the wrong level after an update",
            OneOperator(operator_policy=Manager("model-based"), infrastructure="A:1", as_published=True),
        ),
        *(
            (
                f"{where}/QL+PDS by eq. 10",
                given,
                "the equation's update in the published world",
                OneOperator(
                    operator_policy=Manager("ql-pds"),
                    infrastructure=where,
                    as_published=True,
                    published_updates=False,
                ),
            )
            for where, given in (("A:3", ".0754"), ("B:3", ".0357"))
        ),
        *(
            (
                f"A:3/{policy}",
                given,
                note,
                OneOperator(operator_policy=Manager(policy), infrastructure="A:3", as_published=True),
            )
            for policy, given, note in (
                ("drs-c", ".5302", ""),
                ("drs-s", ".0542", ""),
                ("drs-0", ".1529", ""),
                ("lohrmann-c", ".4493", ""),
                ("lohrmann-s", ".0540", ""),
                ("lohrmann-0", ".0862", ""),
                ("heinze-c", ".1175", "target .7, greedy"),
                ("heinze-s", ".0995", "target .7, greedy"),
            )
        ),
    )
    for name, given, note, spec in listed:
        job: Job = (spec, rates_of(traces, "taxi"), traces.taxi_last_month)
        yield Pending((job,), _reference_claim(name, given, note))


def _reference_claim(name: str, given: str, note: str) -> Callable[[Sequence[Outcome]], list[Claim]]:
    """What the published code gives to four digits, and no paper prints."""

    def claims(outcomes: Sequence[Outcome]) -> list[Claim]:
        measured = outcomes[0].avg_cost
        apart = abs(measured - float(given))
        against = f"{shown_like(given, measured).removeprefix('0')} against {given}"
        return [
            Claim(
                id=f"reference/{name}/avg_cost, apart from the published code's",
                source="no paper: published simulator of Russo 2023",
                printed=None,
                measured=apart,
                shown=f"{apart:.6f}",
                asked=less_than(_HALF_A_DIGIT),
                note=f"{against}; {note}" if note else against,
            )
        ]

    return claims
