"""Whole applications under an Application Manager, by name: the loop of the hierarchy over a trace.

A reconfiguration pauses the application; what arrives meanwhile, and what an overloaded
application cannot take, waits at the source (`runtimes/sim/application.py`). That is the
loop a live runtime runs, in Python: about a thousand slots a second.
"""

import difflib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from penstock.apps.named import application_named, constant_delays_s, usual_bounds_s
from penstock.compiled import Floats, read_only
from penstock.control.hierarchy import Managers, decide, first_memory
from penstock.domain.application import Application
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.experiments.catalogue import TRAINING_SLOTS
from penstock.experiments.presets import Scenario, scenario
from penstock.experiments.run import (
    History,
    LocalManager,
    Outcome,
    first_deployment,
    local_managers,
    run_graph,
    run_spec,
)
from penstock.experiments.spec import Spec
from penstock.perf.deployments import deployments, replicas_at
from penstock.perf.downtime import PauseAndResume
from penstock.perf.joint import joint_queues
from penstock.perf.queueing import m_g_1
from penstock.policies.api import ApplicationPolicy
from penstock.policies.application.bayesian import Measured
from penstock.policies.application.centralised import (
    CentralisedLearner,
    CentralisedMdp,
    application_problem,
    joint_violation_costs,
)
from penstock.policies.application.drs import DrsManager
from penstock.policies.application.grant_all import GrantAll
from penstock.policies.application.lohrmann import LohrmannManager
from penstock.policies.application.sizing import SizingManager
from penstock.policies.application.token_bucket import TokenBucket
from penstock.policies.application.tuned import (
    Behaviour,
    Configuration,
    TunedManager,
    confirmed,
    judged,
    naive,
)
from penstock.policies.operator.model_based import Sweeps
from penstock.policies.operator.node_choice import NodeChoice
from penstock.policies.rl.backup import transitions
from penstock.policies.rl.problem import level_rates, levels_of
from penstock.runtimes.sim.application import OperatorModel, SimulatedApplication

SLOT_S = 60.0
MONITORED_SLOTS = 50_000  # at most, of the training trace, that the tuned manager simulates
REPLAYS = 8
TUNING_ROUNDS = 2


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
    def queueing_objective(self) -> Objective:
        """What constant delays leave of every path's limit."""
        if not self.delays_s:
            return self.objective
        left = {
            path: self.objective.for_path(path) - sum(self.delays_s.get(name, 0.0) for name in path)
            for path in self.application.paths
        }
        return replace(self.objective, per_path_s=left)


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


def _grant_all(setting: Setting) -> Hierarchy:
    return Hierarchy(application=GrantAll(), locals_=_local(setting))


def _token_bucket(setting: Setting) -> Hierarchy:
    """Thresholds and period as in seed 000: half and nine tenths of the objective, every second interval."""
    limit_s = min(setting.objective.for_path(path) for path in setting.application.paths)
    bucket = TokenBucket(low_s=limit_s / 2, high_s=0.9 * limit_s, period_s=2 * SLOT_S)
    return Hierarchy(application=bucket, locals_=_local(setting))


def _tuned(setting: Setting) -> Hierarchy:
    """Bounds and weights tuned on the training trace before the run; nothing is refused."""
    return Hierarchy(application=GrantAll(), locals_=_local(setting, tuned_configuration(setting)))


def tuned_configuration(setting: Setting) -> Configuration:
    """Algorithm 4 from the naive configuration, and a longer look at the best."""
    if setting.delays_s:
        raise InputError(
            f"application '{setting.application.name}': the tuned manager does not model its constant delays"
        )
    spec, objective = setting.spec, setting.objective
    monitored = setting.training[:MONITORED_SLOTS]
    limit_s = min(objective.for_path(path) for path in setting.application.paths)
    # The mean wait of a slot that begins with a pause, whatever the rate.
    pause_is_late = spec.pause_s**2 / (2 * SLOT_S) > limit_s

    def evaluate(chosen: Configuration, rates: Floats) -> Measured:
        outcome = run_graph(
            spec, setting.application, rates, bounds_s=chosen.bounds_s, manager_weights=chosen.weights
        )
        reconfigurations = outcome.reconfigurations_pct / 100
        late = outcome.violations_pct / 100 + (reconfigurations if pause_is_late else 0.0)
        behaviour = Behaviour(
            resource_cost=outcome.resource_cost,
            violations=min(late, 1.0),
            reconfigurations=reconfigurations,
        )
        return judged(behaviour, objective)

    tuner = TunedManager(
        application=setting.application,
        objective=objective,
        max_rounds=TUNING_ROUNDS,
        fastest=max(node_type.speedup for node_type in setting.node_types),
    )
    tuned = tuner.tune(
        lambda chosen: evaluate(chosen, monitored),
        naive(setting.application, objective),
        np.random.default_rng(spec.seed),
    )
    longer = np.tile(monitored, REPLAYS)
    return confirmed(tuned.start, tuned.phases, lambda chosen: evaluate(chosen, longer)).configuration


def _centralised(kind: str) -> Callable[[Setting], Hierarchy]:
    def build(setting: Setting) -> Hierarchy:
        spec = setting.spec
        if len(setting.node_types) > 1:
            raise InputError(
                f"{kind}: plans for one type of node, infrastructure '{spec.infrastructure}' has "
                f"{len(setting.node_types)}; try --infrastructure A:1"
            )
        if setting.delays_s:
            raise InputError(
                f"{kind}: does not model the constant delays of application '{setting.application.name}'"
            )
        application, objective = setting.application, setting.objective
        problem = application_problem(application, objective, levels=spec.levels, max_rate=spec.max_rate)
        queues = joint_queues(application, objective)
        costs = joint_violation_costs(problem, queues, level_rates(problem))
        if kind == "centralised":
            moves = transitions(levels_of(problem, setting.training), spec.levels)
            return Hierarchy(
                application=CentralisedMdp(
                    application=application,
                    objective=objective,
                    problem=problem,
                    gamma=spec.gamma,
                    transitions=moves,
                    violation_costs=costs,
                ),
                locals_={},
            )
        return Hierarchy(
            application=CentralisedLearner(
                application=application,
                objective=objective,
                problem=problem,
                gamma=spec.gamma,
                violation_costs=costs if kind.endswith("plus") else None,
                sweeps=Sweeps(longest_interval=10),
            ),
            locals_={},
        )

    return build


def _sizing(manager: type[SizingManager], choice: NodeChoice) -> Callable[[Setting], Hierarchy]:
    def build(setting: Setting) -> Hierarchy:
        policy = manager(
            application=setting.application,
            objective=setting.queueing_objective,
            node_types=setting.node_types,
            node_choice=choice,
            as_published=setting.spec.variant.ignore_speedups,
        )
        return Hierarchy(application=policy, locals_={}, first_type=policy.chosen_type)

    return build


COORDINATING = ("grant-all", "token-bucket", "tuned")  # operators have managers of their own below them
APPLICATION_POLICIES: Mapping[str, Callable[[Setting], Hierarchy]] = {
    "grant-all": _grant_all,
    "token-bucket": _token_bucket,
    "tuned": _tuned,
    **{name: _centralised(name) for name in ("centralised", "centralised-rl-plus", "centralised-rl")},
    **{f"drs-{choice.value}": _sizing(DrsManager, choice) for choice in NodeChoice},
    **{f"lohrmann-{choice.value}": _sizing(LohrmannManager, choice) for choice in NodeChoice},
}


def check_application_policy_name(name: str) -> None:
    if name not in APPLICATION_POLICIES:
        near = difflib.get_close_matches(name, APPLICATION_POLICIES, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"choose one of {', '.join(APPLICATION_POLICIES)}"
        raise InputError(f"application policy '{name}': unknown; {hint}")


def operators_decide(spec: Spec) -> bool:
    """Whether operators have managers of their own, with or without one above them."""
    return spec.application_policy is None or spec.application_policy in COORDINATING


def label(spec: Spec) -> str:
    """A short name for who manages: of one operator, of many, or of the application."""
    if spec.application_policy is None:
        return spec.policy
    if operators_decide(spec):
        return f"{spec.policy} + {spec.application_policy}"
    return f"{spec.application_policy} (application)"


def run_any(
    spec: Spec, rates: Floats, *, training: Floats | None = None, with_history: bool = False
) -> Outcome:
    """Simulate a specification, whoever manages it."""
    if spec.application_policy is None:
        return run_spec(spec, rates, training=training, with_history=with_history)
    rates = read_only(rates)
    training = rates[-TRAINING_SLOTS:] if training is None else training
    return run_managed(spec, rates, training=training, with_history=with_history)


def run_managed(spec: Spec, rates: Floats, *, training: Floats, with_history: bool = False) -> Outcome:
    """Simulate an application under its Application Manager."""
    check_application_policy_name(spec.application_policy or "")
    name = spec.application or ""
    setting = Setting(
        spec=spec,
        application=application_named(name, spec.max_replicas),
        where=scenario(spec.infrastructure, spec.variant),
        delays_s=constant_delays_s(name),
        rates=rates,
        training=training,
    )
    simulated = _simulated(setting, hierarchy := _built(setting))
    managers = Managers(
        operators={name: one.policy for name, one in hierarchy.locals_.items()},
        application=hierarchy.application,
        application_period_s=SLOT_S,
    )
    rngs: dict[str, Generator] = {name: one.rng for name, one in hierarchy.locals_.items()}
    memory = first_memory(managers)
    by_type = np.zeros(len(setting.node_types))
    began = time.perf_counter()
    while not simulated.finished:
        seen = simulated.observe()
        outcome, memory = decide(managers, memory, seen, rngs)
        for one in seen.operators:
            by_type += one.replicas.counts
        simulated.apply(outcome.verdict)
    return _outcome(setting, simulated, by_type / rates.size, time.perf_counter() - began, with_history)


def _built(setting: Setting) -> Hierarchy:
    return APPLICATION_POLICIES[setting.spec.application_policy or ""](setting)


def _simulated(setting: Setting, hierarchy: Hierarchy) -> SimulatedApplication:
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
    )


def _outcome(
    setting: Setting, simulated: SimulatedApplication, by_type: Floats, seconds: float, with_history: bool
) -> Outcome:
    played, weights = simulated.played, setting.spec.weights
    late = np.array([slot.violated for slot in played], dtype=np.float64)
    changed = np.array([slot.reconfigured for slot in played], dtype=np.float64)
    resources = np.array([slot.resources for slot in played])
    most = sum(operator.max_replicas for operator in setting.application.operators)
    scale = most * setting.where.normalising_price
    cost = (
        weights.performance * late + weights.resources * resources / scale + weights.reconfiguration * changed
    )
    return Outcome(
        spec=setting.spec,
        slots=len(played),
        avg_cost=float(cost.mean()),
        violations_pct=100 * float(late.mean()),
        reconfigurations_pct=100 * float(changed.mean()),
        resource_cost=float(resources.mean()),
        replicas_by_type=tuple(float(mean) for mean in by_type),
        seconds=seconds,
        downtime_pct=100 * sum(slot.downtime_s for slot in played) / (len(played) * SLOT_S),
        history=History(
            cost=cost,
            response_time_s=np.array([slot.response_time_s for slot in played]),
            replicas=np.array([slot.replicas for slot in played], dtype=np.float64),
            resources=resources,
        )
        if with_history
        else None,
    )
