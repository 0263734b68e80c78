"""The printed tables of Russo 2023, from the paper (package data) and the reference notes."""

from functools import partial

import numpy as np
import pytest

from penstock.compiled import Floats
from penstock.control.spec import Manager
from penstock.papers.claims import shown_like
from penstock.papers.taas_tables import COLUMNS, TAXI_SLOTS, printed_rows
from penstock.simulation.play import run
from penstock.simulation.presets import WORKLOADS
from penstock.simulation.spec import OneOperator

DETERMINISTIC = {"TB-C": "threshold-c", "TB-S": "threshold-s", "QL+PDS": "ql-pds"}
published = partial(OneOperator, as_published=True)


def name_of(row: dict[str, str]) -> str:
    return f"table-{row['table']}-{row['infrastructure']}{row['node_types']}-{row['policy']}"


@pytest.mark.parametrize("row", [r for r in printed_rows() if r["policy"] in DETERMINISTIC], ids=name_of)
def test_a_deterministic_row_equals_the_paper_in_all_printed_digits(
    row: dict[str, str], taxi: Floats, tweets: Floats
) -> None:
    workload = WORKLOADS[row["trace"]]
    outcome = run(
        published(
            operator_policy=Manager(DETERMINISTIC[row["policy"]]),
            infrastructure=f"{row['infrastructure']}:{row['node_types']}",
            max_replicas=int(row["max_replicas"]),
            service_rate=workload.service_rate,
            max_rate=workload.max_rate,
        ),
        taxi[:TAXI_SLOTS] if row["trace"] == "taxi" else tweets,
    )
    measured = {column: shown_like(row[column], getattr(outcome, column)) for column in COLUMNS}
    assert measured == {column: row[column] for column in COLUMNS}


def mean_cost(spec: OneOperator, rates: Floats, seeds: int) -> float:
    specs = [
        OneOperator(
            operator_policy=spec.operator_policy,
            infrastructure=spec.infrastructure,
            as_published=True,
            seed=s,
        )
        for s in range(seeds)
    ]
    return float(np.mean([run(one, rates).avg_cost for one in specs]))


@pytest.mark.parametrize(
    ("infrastructure", "policy", "seeds", "printed", "tolerance"),
    [
        ("A:3", "ql", 3, 0.1866, 0.02),
        ("B:3", "ql", 3, 0.1530, 0.02),
        ("A:3", "ql-pds-plus", 10, 0.0772, 0.05),
        ("B:3", "ql-pds-plus", 10, 0.0089, 0.15),
    ],
)
def test_a_seeded_row_is_near_the_paper(
    taxi: Floats, infrastructure: str, policy: str, seeds: int, printed: float, tolerance: float
) -> None:
    spec = published(operator_policy=Manager(policy), infrastructure=infrastructure)
    assert mean_cost(spec, taxi[:TAXI_SLOTS], seeds) == pytest.approx(printed, rel=tolerance)


def name_of_reference(value: object) -> str:
    if not isinstance(value, OneOperator):
        return ""
    update = "" if value.published_updates is None else "-equation"
    return f"{value.operator_policy.name}-{value.infrastructure}{update}"


@pytest.mark.parametrize(
    ("spec", "reference"),
    [
        (published(operator_policy=Manager("vi"), infrastructure="A:1"), (".0329",)),
        (published(operator_policy=Manager("vi"), infrastructure="A:3"), (".0329", ".03", ".47", "3.18")),
        (published(operator_policy=Manager("vi"), infrastructure="B:3"), (".0028", ".02", "0", "4.00")),
        (published(operator_policy=Manager("model-based"), infrastructure="A:1"), (".0336",)),
        (published(operator_policy=Manager("ql-pds"), infrastructure="A:1"), (".0508",)),
        (published(operator_policy=Manager("ql-pds")), (".0836", ".61", "4.64", "7.07")),
        (
            published(operator_policy=Manager("ql-pds"), infrastructure="B:3"),
            (".0525", "5.53", "3.19", "19.51"),
        ),
        (
            published(operator_policy=Manager("ql-pds"), published_updates=False),
            (".0754", ".66", "1.19", "6.90"),
        ),
        (
            published(operator_policy=Manager("ql-pds"), infrastructure="B:3", published_updates=False),
            (".0357", "4.16", ".79", "13.69"),
        ),
        (published(operator_policy=Manager("drs-c")), (".5302",)),
        (published(operator_policy=Manager("drs-s")), (".0542",)),
        (published(operator_policy=Manager("drs-0")), (".1529",)),
        (published(operator_policy=Manager("lohrmann-c")), (".4493",)),
        (published(operator_policy=Manager("lohrmann-s")), (".0540",)),
        (published(operator_policy=Manager("lohrmann-0")), (".0862",)),
        (published(operator_policy=Manager("heinze-c")), (".1175", "14.4", "2.6", "2.60")),
        (published(operator_policy=Manager("heinze-s")), (".0995", "10.8", "2.8", "2.90")),
    ],
    ids=name_of_reference,
)
def test_a_result_of_the_published_code_is_met_in_every_printed_digit(
    taxi: Floats, taxi_last_month: Floats, spec: OneOperator, reference: tuple[str, ...]
) -> None:
    outcome = run(spec, taxi[:TAXI_SLOTS], training=taxi_last_month)
    measured = [
        shown_like(printed, getattr(outcome, column)).removeprefix("0") or "0"
        for column, printed in zip(COLUMNS, reference, strict=False)
    ]
    assert measured == list(reference)
