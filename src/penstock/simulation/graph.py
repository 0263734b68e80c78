"""Simulating a graph of operators that each have a manager, with none above them."""

import time
from collections.abc import Mapping

import numpy as np

from penstock.apps.registry import application_entry
from penstock.compiled import Floats, read_only
from penstock.control.spec import ControllerSpec, OperatorSpec
from penstock.domain.application import Application
from penstock.domain.errors import InputError
from penstock.domain.objective import Weights
from penstock.perf.deployments import counts_at
from penstock.perf.latency import check_objective, equal_shares
from penstock.runtimes.sim.graph import ApplicationRun, ManagedOperator, managed_operators, run_application
from penstock.simulation.presets import scenario
from penstock.simulation.result import History, SimulationResult
from penstock.simulation.spec import ManagedApplication, OperatorGraph
from penstock.simulation.truth import SLOT_S, Truth, first_deployment, foresight_of


def run_graph(
    spec: OperatorGraph, rates: Floats, training: Floats, *, with_history: bool = False
) -> SimulationResult:
    """Simulate every operator of an application, each by itself."""
    application = application_entry(spec.application).graph(spec.max_replicas)
    return simulated_graph(spec, application, rates, training, with_history=with_history)


def simulated_graph(
    spec: OperatorGraph | ManagedApplication,
    application: Application,
    rates: Floats,
    training: Floats,
    *,
    bounds_s: Mapping[str, float] | None = None,
    manager_weights: Weights | None = None,
    with_history: bool = False,
) -> SimulationResult:
    """Simulate this graph, whatever application the specification names.

    `bounds_s` is what each Operator Manager takes for its own response-time objective (an
    equal share if left out) and `manager_weights` what weighs in its decisions (the
    specification's if left out). The result is accounted with the specification's
    objective and weights either way.
    """
    rates = read_only(rates)
    objective = spec.objective
    managers = managers_of(spec, application, bounds_s=bounds_s, weights=manager_weights)
    check_objective(application, objective, fastest=max(kind.speedup for kind in managers.node_types))
    seeds = np.random.default_rng(spec.seed).spawn(2 * len(application.operators))
    names = [operator.name for operator in application.operators]
    managed = managed_operators(
        managers,
        Truth(
            setting=spec,
            rates=rates,
            training=training,
            rngs=dict(zip(names, seeds[::2], strict=True)),
            weights=manager_weights,
        ),
        dict(zip(names, seeds[1::2], strict=True)),
        first=lambda known, policy: first_deployment(known, policy, spec.variant.first_replica),
        charge_before=spec.variant.charge_before,
    )

    def run(over: Floats) -> ApplicationRun:
        at_source_rate = spec.variant.latency_at_source_rate
        return run_application(
            application,
            objective,
            managed,
            over,
            latency_at_source_rate=at_source_rate,
            foresight=foresight_of(spec),
        )

    run(rates[:0])  # compile before timing
    began = time.perf_counter()
    ran = run(rates)
    seconds = time.perf_counter() - began
    return _result(spec, managed, ran, seconds, with_history)


def managers_of(
    spec: OperatorGraph | ManagedApplication,
    application: Application,
    *,
    bounds_s: Mapping[str, float] | None = None,
    weights: Weights | None = None,
) -> ControllerSpec:
    """Who decides for a simulated application; bounds are equal shares if left out."""
    shares = equal_shares(application, spec.objective) if bounds_s is None else bounds_s
    for operator in application.operators:
        if operator.name not in shares:
            raise InputError(f"operator '{operator.name}': no response-time bound among {', '.join(shares)}")
    return ControllerSpec(
        application=application,
        objective=spec.objective,
        node_types=scenario(spec.infrastructure, spec.variant).infrastructure.node_types,
        operators=tuple(
            OperatorSpec(
                name=operator.name,
                bound_s=shares[operator.name],
                service_time_s=operator.service_time_s,
                service_scv=operator.service_scv,
                max_replicas=operator.max_replicas,
                batching=operator.batching,
            )
            for operator in application.operators
        ),
        operator_policy=spec.operator_policy,
        weights=spec.weights if weights is None else weights,
        levels=spec.levels,
        interval_s=SLOT_S,
        safety=None,
        seed=spec.seed,
    )


def _result(
    spec: OperatorGraph | ManagedApplication,
    managed: Mapping[str, ManagedOperator],
    ran: ApplicationRun,
    seconds: float,
    with_history: bool,
) -> SimulationResult:
    spaces = {name: one.world.deployments for name, one in managed.items()}
    by_type = np.sum([counts_at(spaces[name], chosen) for name, chosen in ran.decided.items()], axis=0)
    in_force = np.sum([counts_at(spaces[name], handles) for name, handles in ran.deployments.items()], axis=0)
    return SimulationResult(
        spec=spec,
        slots=ran.cost.size,
        avg_cost=float(ran.cost.mean()),
        violations_pct=100 * float(ran.violated.mean()),
        reconfigurations_pct=100 * float(ran.reconfigured.mean()),
        resource_cost=float(ran.resources.mean()),
        replicas_by_type=tuple(float(mean) for mean in by_type.mean(axis=0)),
        seconds=seconds,
        history=History(
            cost=ran.cost,
            response_time_s=ran.response_time_s,
            replicas=in_force.sum(axis=1).astype(np.float64),
            resources=ran.resources,
        )
        if with_history
        else None,
    )
