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


@pytest.mark.parametrize(
    ("spec", "reference", "tolerance"),
    [
        (published(operator_policy=Manager("vi"), infrastructure="A:3"), 0.0329, 0.02),
        (published(operator_policy=Manager("vi"), infrastructure="B:3"), 0.0028, 0.02),
        (published(operator_policy=Manager("model-based"), infrastructure="A:1"), 0.0336, 0.02),
        (
            published(operator_policy=Manager("ql-pds"), infrastructure="A:3", published_updates=False),
            0.0754,
            0.001,
        ),
        (
            published(operator_policy=Manager("ql-pds"), infrastructure="B:3", published_updates=False),
            0.0357,
            0.001,
        ),
        (published(operator_policy=Manager("drs-c")), 0.5302, 0.0001),
        (published(operator_policy=Manager("drs-s")), 0.0542, 0.001),
        (published(operator_policy=Manager("drs-0")), 0.1529, 0.001),
        (published(operator_policy=Manager("lohrmann-c")), 0.4493, 0.0002),
        (published(operator_policy=Manager("lohrmann-s")), 0.0540, 0.001),
        (published(operator_policy=Manager("lohrmann-0")), 0.0862, 0.001),
        (published(operator_policy=Manager("heinze-c")), 0.1175, 0.05),
        (published(operator_policy=Manager("heinze-s")), 0.0995, 0.05),
    ],
    ids=lambda value: (
        f"{value.operator_policy.name}-{value.infrastructure}" if isinstance(value, OneOperator) else ""
    ),
)
def test_a_result_of_the_published_code_is_met(
    taxi: Floats, taxi_last_month: Floats, spec: OneOperator, reference: float, tolerance: float
) -> None:
    outcome = run(spec, taxi[:TAXI_SLOTS], training=taxi_last_month)
    assert outcome.avg_cost == pytest.approx(reference, rel=tolerance)
