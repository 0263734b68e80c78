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
from penstock.simulation.hosts import hosts_of
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
    if given.get("node_policy") is not None:
        given["node_policy"] = manager_of(Level.NODE, given["node_policy"])
    if isinstance(given.get("hosts"), str):
        given["hosts"] = hosts_of(given["hosts"])
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
    training: npt.ArrayLike | None = None,
    **settings: Any,
) -> dict[str, list[SimulationResult]]:
    """Results by policy, one per seed where the policy is random, the cheapest policy first."""
    from dataclasses import replace

    if "seed" in settings:
        raise InputError("compare: 'seed' does not apply here; seeds 1 to `seeds` are run")
    slots = _rates(rates)
    learned_from = None if training is None else _rates(training)
    specs = {str(spec.operator_policy): spec for spec in (simulation_of(one, **settings) for one in policies)}
    jobs = [
        (replace(spec, seed=seed), slots, learned_from)
        for spec in specs.values()
        for seed in range(1, (seeds if spec.depends_on_seed else 1) + 1)
    ]
    results = run_all(jobs, threads=threads, with_history=with_history)
    found: dict[str, list[SimulationResult]] = {}
    for result in results:
        found.setdefault(str(result.spec.operator_policy), []).append(result)
    return dict(sorted(found.items(), key=lambda item: float(np.mean([one.avg_cost for one in item[1]]))))


def _rates(rates: npt.ArrayLike) -> npt.NDArray[np.float64]:
    return np.asarray(rates, dtype=np.float64)
