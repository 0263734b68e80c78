"""Whole applications under an Application Manager, by name: the loop of the hierarchy over a trace.

A reconfiguration pauses the application; what arrives meanwhile, and what an overloaded
application cannot take, waits at the source (`runtimes/sim/application.py`). That is the
loop a live runtime runs, in Python: about a thousand slots a second.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from penstock.apps.named import application_named, constant_delays_s, usual_bounds_s
from penstock.compiled import Floats, read_only
from penstock.control.hierarchy import PLACING, Managers
from penstock.control.loop import Controller, in_place, memory_with, tick
from penstock.control.ports import Unwritten
from penstock.domain.application import Application
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import Infrastructure, NodeType
from penstock.domain.objective import Objective
from penstock.perf.deployments import deployments, replicas_at
from penstock.perf.downtime import PauseAndResume
from penstock.perf.queueing import m_g_1
from penstock.policies.api import ApplicationPolicy
from penstock.policies.application.sizing import SizingManager
from penstock.policies.application.tuned import Configuration, naive
from penstock.policies.node.migrate import SenderInitiated
from penstock.runtimes.sim.application import OperatorModel, SimulatedApplication
from penstock.runtimes.sim.round_trips import RoundTrips, true_delays
from penstock.simulate.application_managers import (
    COORDINATING,
    TUNED,
    Told,
    build_application_policy,
    check_application_policy_name,
    check_manager,
    check_tunable,
    usual_bucket_s,
    who_decides,
)
from penstock.simulate.catalogue import TRAINING_SLOTS
from penstock.simulate.hosts import network
from penstock.simulate.presets import Scenario, scenario
from penstock.simulate.simulation import (
    History,
    LocalManager,
    SimulationResult,
    first_deployment,
    local_managers,
    run_graph,
    run_spec,
)
from penstock.simulate.spec import Spec
from penstock.training.tuning import chosen_by_simulation

SLOT_S = 60.0
MONITORED_SLOTS = 50_000  # at most, of the training trace, that the tuned manager simulates


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What an Application Manager is built for."""

    spec: Spec
    application: Application
    where: Scenario
    delays_s: Mapping[str, float]
    rates: Floats
    training: Floats

    @property
    def objective(self) -> Objective:
        return self.spec.objective

    @property
    def node_types(self) -> tuple[NodeType, ...]:
        return self.where.infrastructure.node_types

    @property
    def nodes(self) -> Infrastructure | None:
        hosts = self.spec.hosts
        return None if hosts is None else network(hosts, self.node_types, self.spec.seed)

    @property
    def told(self) -> Told:
        """Thresholds and period of the token bucket as in Cardellini 2018: every second interval."""
        return Told(
            application=self.application,
            objective=self.objective,
            node_types=self.node_types,
            training=self.training,
            max_rate=self.spec.max_rate,
            levels=self.spec.levels,
            gamma=self.spec.gamma,
            bucket_s=usual_bucket_s(self.application, self.objective),
            bucket_period_s=2 * SLOT_S,
            delays_s=self.delays_s,
            as_published=self.spec.variant.ignore_speedups,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """Who manages what, and where every operator starts."""

    application: ApplicationPolicy[Any]
    locals_: Mapping[str, LocalManager]  # empty where the Application Manager decides itself
    first_type: int = 0  # of the first replicas, where it does


def _local(setting: Setting, chosen: Configuration | None = None) -> dict[str, LocalManager]:
    limits = [setting.objective.for_path(path) for path in setting.application.paths]
    usual = usual_bounds_s(setting.spec.application or "", min(limits))
    managers = local_managers(
        setting.spec,
        setting.application,
        setting.rates,
        setting.training,
        bounds_s=usual if chosen is None else chosen.bounds_s,
        manager_weights=None if chosen is None else chosen.weights,
    )
    # What cannot be replicated needs no manager.
    return {name: one for name, one in managers.items() if one.op.spec.max_replicas > 1}


def tuned_configuration(setting: Setting) -> Configuration:
    """Algorithm 4 from the naive configuration, and a longer look at the best.

    Constant delays are no operator's to shorten: what they leave is shared out, and whoever has
    one gets it back on top of his share, because his response times contain it.
    """
    application, objective = setting.application, setting.told.queueing_objective
    spec = replace(setting.spec, path_slo_s=tuple(objective.per_path_s.items()))
    limit_s = min(objective.for_path(path) for path in application.paths)
    chosen = chosen_by_simulation(
        lambda chosen, rates: run_graph(
            spec, application, rates, bounds_s=chosen.bounds_s, manager_weights=chosen.weights
        ),
        naive(application, objective),
        np.random.default_rng(spec.seed),
        application=application,
        objective=objective,
        rates=setting.training[:MONITORED_SLOTS],
        fastest=max(node_type.speedup for node_type in setting.node_types),
        # The mean wait of a slot that begins with a pause, whatever the rate.
        changes_are_late=spec.pause_s**2 / (2 * SLOT_S) > limit_s,
    ).best.configuration
    seen = {name: bound + setting.delays_s.get(name, 0.0) for name, bound in chosen.bounds_s.items()}
    return replace(chosen, bounds_s=seen)


def _hierarchy(setting: Setting) -> Hierarchy:
    name = setting.spec.application_policy or ""
    check_manager(
        name,
        setting.application,
        setting.node_types,
        where=f"infrastructure '{setting.spec.infrastructure}'",
        delays_s=setting.delays_s,
    )
    locals_: Mapping[str, LocalManager] = {}
    if name in COORDINATING:
        locals_ = _local(setting, tuned_configuration(setting) if name == TUNED else None)
    policy = build_application_policy(name, setting.told)
    first_type = policy.chosen_type if isinstance(policy, SizingManager) else 0
    return Hierarchy(application=policy, locals_=locals_, first_type=first_type)


def operators_decide(spec: Spec) -> bool:
    """Whether operators have managers of their own, with or without one above them."""
    return spec.application_policy is None or spec.application_policy in COORDINATING


def label(spec: Spec) -> str:
    """A short name for who manages: of one operator, of many, or of the application."""
    return (
        spec.policy if spec.application_policy is None else who_decides(spec.policy, spec.application_policy)
    )


def run_any(
    spec: Spec, rates: Floats, *, training: Floats | None = None, with_history: bool = False
) -> SimulationResult:
    """Simulate a specification, whoever manages it."""
    if spec.application_policy is None:
        return run_spec(spec, rates, training=training, with_history=with_history)
    rates = read_only(rates)
    training = rates[-TRAINING_SLOTS:] if training is None else training
    return run_managed(spec, rates, training=training, with_history=with_history)


def run_managed(
    spec: Spec, rates: Floats, *, training: Floats, with_history: bool = False
) -> SimulationResult:
    """Simulate an application under its Application Manager."""
    check_application_policy_name(spec.application_policy or "")
    check_tunable(spec.policy, spec.application_policy, replicas=spec.replicas)
    name = spec.application or ""
    setting = Setting(
        spec=spec,
        application=application_named(name, spec.max_replicas),
        where=scenario(spec.infrastructure, spec.variant),
        delays_s=constant_delays_s(name),
        rates=rates,
        training=training,
    )
    nodes = setting.nodes
    node_names = [] if nodes is None else [node.name for node in nodes.nodes]
    network_rng, *node_rngs = np.random.default_rng([spec.seed, len(node_names)]).spawn(len(node_names) + 2)
    simulated = _simulated(setting, hierarchy := _hierarchy(setting), nodes, network_rng)
    managers = Managers(
        operators={name: one.policy for name, one in hierarchy.locals_.items()},
        application=hierarchy.application,
        nodes={}
        if spec.migrate_above is None
        else dict.fromkeys(node_names, SenderInitiated(target_utilisation=spec.migrate_above)),
        application_period_s=SLOT_S,
    )
    rngs: dict[str, Generator] = {
        **{name: one.rng for name, one in hierarchy.locals_.items()},
        **dict(zip((PLACING, *node_names), node_rngs, strict=True)),
    }
    controller = Controller(managers=managers, node_types=setting.node_types, safety=None)
    memory, journal = in_place(controller, memory_with(controller, rngs)), Unwritten()
    began = time.perf_counter()
    while not simulated.finished:
        memory = tick(controller, memory, simulated, journal, simulated)
    return _outcome(setting, simulated, time.perf_counter() - began, with_history)


def _simulated(
    setting: Setting, hierarchy: Hierarchy, nodes: Infrastructure | None, rng: Generator
) -> SimulatedApplication:
    def first(name: str) -> Replicas:
        if name in hierarchy.locals_:
            op, policy, _ = hierarchy.locals_[name]
            return replicas_at(op.deployments, first_deployment(op, policy))
        return Replicas(tuple(int(i == hierarchy.first_type) for i in range(len(setting.node_types))))

    return SimulatedApplication(
        application=setting.application,
        objective=setting.objective,
        models={
            operator.name: OperatorModel(
                queue=m_g_1(operator.service_time_s, operator.service_scv),
                deployments=deployments(setting.node_types, operator.max_replicas),
                first=first(operator.name),
                delay_s=setting.delays_s.get(operator.name, 0.0),
            )
            for operator in setting.application.operators
        },
        rates=setting.rates,
        protocol=PauseAndResume(fixed_s=setting.spec.pause_s),
        slot_s=SLOT_S,
        infrastructure=nodes,
        round_trips=None if nodes is None else RoundTrips(true_delays(nodes), rng),
    )


def _outcome(
    setting: Setting, simulated: SimulatedApplication, seconds: float, with_history: bool
) -> SimulationResult:
    played, weights = simulated.played, setting.spec.weights
    late = np.array([slot.violated for slot in played], dtype=np.float64)
    changed = np.array([slot.reconfigured for slot in played], dtype=np.float64)
    resources = np.array([slot.resources for slot in played])
    most = sum(operator.max_replicas for operator in setting.application.operators)
    scale = most * setting.where.normalising_price
    cost = (
        weights.performance * late + weights.resources * resources / scale + weights.reconfiguration * changed
    )
    return SimulationResult(
        spec=setting.spec,
        slots=len(played),
        avg_cost=float(cost.mean()),
        violations_pct=100 * float(late.mean()),
        reconfigurations_pct=100 * float(changed.mean()),
        resource_cost=float(resources.mean()),
        replicas_by_type=tuple(float(mean) for mean in np.mean([slot.by_type for slot in played], axis=0)),
        seconds=seconds,
        downtime_pct=100 * sum(slot.downtime_s for slot in played) / (len(played) * SLOT_S),
        migrations=None if setting.spec.hosts is None else sum(slot.migrations for slot in played),
        history=History(
            cost=cost,
            response_time_s=np.array([slot.response_time_s for slot in played]),
            replicas=np.array([slot.replicas for slot in played], dtype=np.float64),
            resources=resources,
        )
        if with_history
        else None,
    )
