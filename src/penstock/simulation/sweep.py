"""A grid of experiments as independent cells, run anywhere, kept in one Parquet table as they finish.

A cell is a complete specification and the trace it runs on; its name is a digest of both.
The table holds finished cells only, so running again does what is missing: what was
interrupted, and what failed. Which worker runs a cell, and when, changes nothing in it.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from penstock.compiled import Floats
from penstock.control.spec import Manager
from penstock.domain.errors import InputError
from penstock.files import check_can_write
from penstock.policy.parameters import USUAL
from penstock.policy.registry import Level, load_any
from penstock.simulation.play import run
from penstock.simulation.spec import OneOperator

CHUNK = 8  # cells a task runs and a file of the table holds: about a second's work


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SweptTrace:
    """The rates cells run on, and what a planner may learn from."""

    trace: str
    rates: Floats
    training: Floats

    @property
    def digest(self) -> str:
        found = hashlib.sha256(self.rates.tobytes())
        found.update(self.training.tobytes())
        return found.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One experiment of a grid; `workload` is the digest of the rates it runs on."""

    spec: OneOperator
    trace: str
    workload: str

    @property
    def name(self) -> str:
        return hashlib.sha256(f"{self.workload} {spec_text(self.spec)}".encode()).hexdigest()[:20]


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCell:
    """What a cell measured."""

    cell: Cell
    slots: int
    avg_cost: float
    violations_pct: float
    reconfigurations_pct: float
    resource_cost: float
    replicas_by_type: tuple[float, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCell:
    """A cell that did not finish, and why in one line."""

    cell: Cell
    error: str


Chunk = Sequence[Cell]
Runner = Callable[[Sequence[Chunk]], Iterator[Sequence[FinishedCell | FailedCell]]]


def spec_text(spec: OneOperator) -> str:
    """Every field of a specification, always in the same order."""
    return json.dumps(asdict(spec), sort_keys=True, default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{value!r} has no place in a specification")


def grid(
    base: OneOperator,
    workload: SweptTrace,
    *,
    policies: Sequence[Manager],
    infrastructures: Sequence[str],
    max_replicas: Sequence[int],
    seeds: int,
) -> list[Cell]:
    """Every combination; a policy that is not random runs once."""
    digest = workload.digest
    specs = [
        replace(
            base,
            operator_policy=policy,
            infrastructure=infrastructure,
            max_replicas=replicas,
        )
        for infrastructure, replicas, policy in product(infrastructures, max_replicas, policies)
    ]
    return [
        Cell(spec=replace(spec, seed=seed), trace=workload.trace, workload=digest)
        for spec in specs
        for seed in range(1, (seeds if spec.depends_on_seed else 1) + 1)
    ]


def run_chunk(
    chunk: Chunk, workloads: Mapping[str, SweptTrace], own: Sequence[str] = ()
) -> list[FinishedCell | FailedCell]:
    """Run cells one after another; one that fails does not stop the next.

    `own` are policies that this process may have to load first.
    """
    for name in own:
        load_any(name)
    return [_run_cell(cell, workloads[cell.workload]) for cell in chunk]


def _run_cell(cell: Cell, workload: SweptTrace) -> FinishedCell | FailedCell:
    try:
        outcome = run(cell.spec, workload.rates, training=workload.training)
    except Exception as problem:
        return FailedCell(
            cell=cell, error=f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}"
        )
    return FinishedCell(
        cell=cell,
        slots=outcome.slots,
        avg_cost=outcome.avg_cost,
        violations_pct=outcome.violations_pct,
        reconfigurations_pct=outcome.reconfigurations_pct,
        resource_cost=outcome.resource_cost,
        replicas_by_type=outcome.replicas_by_type,
        seconds=outcome.seconds,
    )


def sweep(
    cells: Sequence[Cell], run: Runner, out: Path, *, done: Callable[[int], None] = lambda cells: None
) -> list[FailedCell]:
    """Run what the table does not hold yet and add it, file by file; returns what failed."""
    left = unfinished(cells, out)
    done(len(cells) - len(left))
    failed: list[FailedCell] = []
    for results in run([left[start : start + CHUNK] for start in range(0, len(left), CHUNK)]):
        finished = [result for result in results if isinstance(result, FinishedCell)]
        failed += [result for result in results if isinstance(result, FailedCell)]
        if finished:
            add_to_table(finished, out)
        done(len(results))
    return failed


def unfinished(cells: Sequence[Cell], table: Path) -> list[Cell]:
    """The cells the table does not hold, each once."""
    try:
        there = table.exists()
    except OSError as problem:
        raise InputError(f"{table}: cannot read: {problem.strerror or problem}") from problem
    known = set(read_table(table, columns=["cell"]).column("cell").to_pylist()) if there else set()
    check_can_write(table / "part")
    return [cell for name, cell in {cell.name: cell for cell in cells}.items() if name not in known]


def read_table(table: Path, columns: list[str] | None = None) -> pyarrow.Table:
    """All finished cells."""
    try:
        if not table.is_dir():
            raise InputError(f"{table}: not a directory; a sweep's table is one of Parquet files")
        files = sorted(table.glob("*.parquet"))
        if not files:
            if any(
                not path.name.startswith(".") for path in table.iterdir()
            ):  # leftovers of a kill are hidden
                raise InputError(f"{table}: holds no sweep; choose another name")
            return pyarrow.table({name: [] for name in columns or ["cell"]})
        # Rows have the parameters of their policies as columns, so files differ in them.
        parts = [pyarrow.parquet.read_table(file, columns=columns) for file in files]
        together: pyarrow.Table = pyarrow.concat_tables(parts, promote_options="permissive")
        return together
    except (OSError, pyarrow.ArrowException) as problem:
        raise InputError(f"{table}: not a sweep's table: {' '.join(str(problem).split())[:200]}") from problem


def add_to_table(finished: Sequence[FinishedCell], table: Path) -> None:
    """One more file of the table, whole or not at all, named after its cells."""
    names = hashlib.sha256(" ".join(result.cell.name for result in finished).encode()).hexdigest()[:20]
    try:
        table.mkdir(parents=True, exist_ok=True)
        beside = table / f".part-{names}"
        pyarrow.parquet.write_table(_table(finished), beside)
        os.replace(beside, table / f"part-{names}.parquet")
    except OSError as problem:
        raise InputError(f"{table}: cannot write: {problem.strerror or problem}") from problem


def _table(finished: Sequence[FinishedCell]) -> pyarrow.Table:
    """Rows have the parameters of their own policy; the others' are null."""
    rows = [_row(result) for result in finished]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return pyarrow.Table.from_pylist([{name: row.get(name) for name in columns} for row in rows])


def _row(result: FinishedCell) -> dict[str, Any]:
    """The specification in full, as one text and its fields as columns, then what was measured."""
    cell = result.cell
    plain = json.loads(spec_text(cell.spec))
    scalars = {name: value for name, value in plain.items() if isinstance(value, str | int | float)}
    values = effective_parameters(cell.spec)
    measured = {field.name: getattr(result, field.name) for field in fields(result) if field.name != "cell"}
    return {
        "cell": cell.name,
        "trace": cell.trace,
        "workload_sha256": cell.workload,
        "spec": spec_text(cell.spec),
        "policy": cell.spec.operator_policy.name,
        **{name: scalars[name] for name in _COLUMNS},
        **{f"weight_{name}": value for name, value in plain["weights"].items()},
        **{f"parameter_{name}": value for name, value in values.items()},
        **measured,
        "replicas_by_type": list(result.replicas_by_type),
    }


def effective_parameters(spec: OneOperator) -> dict[str, Any]:
    """Every parameter of the policy with the value it had: as set, as published, or its default."""
    found = spec.operator_policy.entry(Level.OPERATOR)
    published = found.published if spec.as_published else {}
    defaults = {
        name: None if parameter.default is USUAL else parameter.default
        for name, parameter in found.parameters.items()
    }
    return {**defaults, **published, **spec.operator_policy.parameters}


# Fields of a specification that are never left open, and so make columns of one type.
_COLUMNS = (
    "infrastructure",
    "max_replicas",
    "seed",
    "slo_s",
    "service_rate",
    "service_scv",
    "levels",
    "max_rate",
    "as_published",
)
