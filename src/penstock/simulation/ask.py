"""Simulations as a Python program asks for them: keywords in, a specification out."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.apps.registry import load_application
from penstock.control.spec import Policy, manager_of
from penstock.domain.errors import InputError
from penstock.policy.parameters import Value
from penstock.policy.registry import Level
from penstock.simulation.play import run, run_all
from penstock.simulation.result import SimulationResult
from penstock.simulation.spec import ManagedApplication, OneOperator, OperatorGraph, Simulation


def simulation_of(
    policy: Policy,
    *,
    parameters: Mapping[str, Value] | None = None,
    application: str | None = None,
    application_policy: Policy | None = None,
    **settings: Any,
) -> Simulation:
    """What these keywords describe; one that does not apply is an error that names it."""
    if application is None and application_policy is not None:
        raise InputError("simulate: an application policy manages an application; give application, too")
    kind = (
        OneOperator
        if application is None
        else OperatorGraph
        if application_policy is None
        else ManagedApplication
    )
    if application is not None:
        load_application(application)
    given: dict[str, Any] = {
        "operator_policy": manager_of(Level.OPERATOR, policy, parameters),
        **({} if application is None else {"application": application}),
        **(
            {}
            if application_policy is None
            else {"application_policy": manager_of(Level.APPLICATION, application_policy)}
        ),
        **settings,
    }
    for name in given:
        if name not in kind.__dataclass_fields__:
            known = ", ".join(field for field in kind.__dataclass_fields__ if field != "operator_policy")
            raise InputError(f"simulate: '{name}' does not apply here; these do: {known}")
    return kind(**given)


def simulated(
    rates: npt.ArrayLike, spec: Simulation, *, training: npt.ArrayLike | None, with_history: bool
) -> SimulationResult:
    learned_from = None if training is None else np.asarray(training, dtype=np.float64)
    return run(spec, _rates(rates), training=learned_from, with_history=with_history)


def compared(
    rates: npt.ArrayLike,
    policies: Sequence[Policy],
    *,
    seeds: int,
    threads: int,
    with_history: bool,
    **settings: Any,
) -> dict[str, list[SimulationResult]]:
    """Results by policy, one per seed where the policy is random, the cheapest policy first."""
    from dataclasses import replace

    slots = _rates(rates)
    specs = [simulation_of(policy, **settings) for policy in policies]
    jobs = [
        (replace(spec, seed=seed), slots, None)
        for spec in specs
        for seed in range(1, (seeds if spec.depends_on_seed else 1) + 1)
    ]
    results = run_all(jobs, threads=threads, with_history=with_history)
    found: dict[str, list[SimulationResult]] = {}
    for result in results:
        found.setdefault(str(result.spec.operator_policy), []).append(result)
    return dict(sorted(found.items(), key=lambda item: float(np.mean([one.avg_cost for one in item[1]]))))


def _rates(rates: npt.ArrayLike) -> npt.NDArray[np.float64]:
    return np.asarray(rates, dtype=np.float64)
