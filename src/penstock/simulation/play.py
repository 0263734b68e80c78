"""Running simulations: one, or many at a time, with the same numbers either way."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from penstock.compiled import Floats, read_only
from penstock.domain.trace import Trace
from penstock.simulation.one_operator import run_operator
from penstock.simulation.result import SimulationResult
from penstock.simulation.spec import ManagedApplication, OneOperator, OperatorGraph, Simulation
from penstock.simulation.truth import TRAINING_SLOTS

T = TypeVar("T")
Job = tuple[Simulation, Floats, Floats | None]  # what to simulate, over which rates, trained on which


def run(
    spec: Simulation, rates: Floats, *, training: Floats | None = None, with_history: bool = False
) -> SimulationResult:
    """Simulate over these rates; planners learn from `training`, the end of the rates if left out."""
    rates = read_only(Trace("rates", np.asarray(rates, dtype=np.float64)).rates)  # checked
    known = rates[-TRAINING_SLOTS:] if training is None else training
    match spec:
        case OneOperator():
            return run_operator(spec, rates, known, with_history=with_history)
        case OperatorGraph():
            from penstock.simulation.graph import run_graph  # each form imports what it needs

            return run_graph(spec, rates, known, with_history=with_history)
        case ManagedApplication():
            from penstock.simulation.managed import run_managed

            return run_managed(spec, rates, known, with_history=with_history)


def run_all(
    jobs: Sequence[Job],
    *,
    threads: int,
    with_history: bool = False,
    done: Callable[[SimulationResult], None] = lambda result: None,
) -> list[SimulationResult]:
    """Simulate many; results come back in the order asked, `done` is called with each as it ends."""

    def told(_: int, result: SimulationResult) -> SimulationResult:
        done(result)
        return result

    return run_each(jobs, told, threads=threads, with_history=with_history)


def run_each(
    jobs: Sequence[Job],
    then: Callable[[int, SimulationResult], T],
    *,
    threads: int,
    with_history: bool = False,
) -> list[T]:
    """Simulate many, and keep of each only what `then` makes of its index and result: histories are large."""

    def one(numbered: tuple[int, Job]) -> T:
        index, (spec, rates, training) = numbered
        return then(index, run(spec, rates, training=training, with_history=with_history))

    with ThreadPoolExecutor(max_workers=max(threads, 1)) as pool:
        try:
            return list(pool.map(one, enumerate(jobs)))
        except BaseException:  # after an error or Ctrl-C, finish what runs and drop what waits
            pool.shutdown(cancel_futures=True)
            raise
