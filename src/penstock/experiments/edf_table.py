"""Table 1 of seed 000, its application simulated: local policies with and without the token bucket."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.apps.top_routes_graph import REFRESH_DELAY_S, top_routes_graph
from penstock.compiled import Floats
from penstock.control.hierarchy import Managers, decide, first_memory
from penstock.domain.application import Operator
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective, Weights
from penstock.perf.deployments import Deployments, deployments
from penstock.perf.downtime import PauseAndResume
from penstock.perf.queueing import m_g_1
from penstock.policies.api import ApplicationPolicy, OperatorPolicy
from penstock.policies.application.grant_all import GrantAll
from penstock.policies.application.token_bucket import TokenBucket
from penstock.policies.operator.model_based import ModelBased
from penstock.policies.operator.node_choice import NodeChoice
from penstock.policies.operator.q_learning import LearningRates, QLearning
from penstock.policies.operator.threshold import Threshold
from penstock.policies.rl.problem import Problem, operator_problem
from penstock.runtimes.sim.application import ColdStart, OperatorModel, PlayedSlot, SimulatedApplication

SLOT_S = 30.0
R_MAX_S = 0.250
SLOTS = 1440  # 12 hours
_NODE = NodeType(name="worker", speedup=1.0, price=1.0)
_SKIPPED_AT_START_S = 30 * 60.0
_SKIPPED_AFTER_CHANGE_S = 120.0
_BOUNDS_S = {"partialRank": 0.210}  # the other replicated operators: 5 ms
_RATES = LearningRates(
    alpha_start=0.1,
    alpha_factor=1.0,
    alpha_floor=0.1,
    epsilon_start=0.05,
    epsilon_factor=1.0,
    epsilon_floor=0.05,
)
_QUANTUM, _LEVELS = 50.0, 11
_COLD_START = ColdStart()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """A row of the table. Times leave out the start and two minutes after each change, as the paper does."""

    mean_ms: float
    median_ms: float
    p95_ms: float
    replicas: float
    downtime_pct: float
    violations_pct: float  # of the slots kept
    all_violations_pct: float  # of all slots after the start: what a user would count
    reconfigurations: int
    last_change_s: float


def workload(taxi: Floats) -> Floats:
    """Five days of the Taxi trace in twelve hours: ten times as fast, five times as many."""
    days = taxi[: 5 * 1440]
    per_slot = days.reshape(SLOTS, -1).mean(axis=1)
    rates: Floats = per_slot / 60.0 * 10 * 5
    return np.clip(rates, 150.0, 500.0)


def _policy(
    kind: str, operator: Operator, space: Deployments, threshold: float, weights: Weights
) -> OperatorPolicy[Any]:
    if kind == "TH":
        return Threshold(
            node_types=(_NODE,), deployments=space, node_choice=NodeChoice.FIRST, threshold=threshold
        )
    problem: Problem = operator_problem(
        space,
        levels=_LEVELS,
        max_rate=_LEVELS * _QUANTUM,
        max_response_time_s=_BOUNDS_S.get(operator.name, 0.005),
        weights=weights,
    )
    if kind == "QL":
        return QLearning(node_types=(_NODE,), deployments=space, problem=problem, rates=_RATES)
    return ModelBased(
        node_types=(_NODE,), deployments=space, problem=problem, rates=_RATES, every_step_until=SLOTS
    )


def run_row(
    kind: str,
    *,
    threshold: float,
    weights: Weights,
    token_bucket: bool,
    rates: Floats,
    seed: int,
    pause_s: float,
) -> Metrics:
    """Twelve hours of one local policy under one global policy."""
    application = top_routes_graph()
    spaces = {o.name: deployments((_NODE,), o.max_replicas) for o in application.operators}
    simulated = SimulatedApplication(
        application=application,
        objective=Objective(response_time_s=R_MAX_S),
        models={
            o.name: OperatorModel(
                queue=m_g_1(o.service_time_s, o.service_scv),
                deployments=spaces[o.name],
                first=Replicas((1,)),
                delay_s=REFRESH_DELAY_S if o.name == "globalRank" else 0.0,
            )
            for o in application.operators
        },
        rates=rates,
        protocol=PauseAndResume(fixed_s=pause_s),
        slot_s=SLOT_S,
        cold_start=_COLD_START,
    )
    managed = [o for o in application.operators if o.max_replicas > 1]
    manager: ApplicationPolicy[Any] = (
        TokenBucket(low_s=R_MAX_S / 2, high_s=0.9 * R_MAX_S, period_s=60.0) if token_bucket else GrantAll()
    )
    managers = Managers(
        operators={o.name: _policy(kind, o, spaces[o.name], threshold, weights) for o in managed},
        application=manager,
        application_period_s=SLOT_S,
        rest_s=2 * SLOT_S,
    )
    rngs = dict(zip((o.name for o in managed), np.random.default_rng(seed).spawn(len(managed)), strict=True))
    memory = first_memory(managers)
    while not simulated.finished:
        outcome, memory = decide(managers, memory, simulated.observe(), rngs)
        simulated.apply(outcome.verdict)
    return measured(simulated.played)


def measured(played: list[PlayedSlot]) -> Metrics:
    """The table's columns from the slots."""
    changes = [slot.at_s for slot in played if slot.reconfigured]
    calm = [
        slot
        for slot in played
        if slot.at_s > _SKIPPED_AT_START_S
        and not any(0 < slot.at_s - change <= _SKIPPED_AFTER_CHANGE_S for change in changes)
    ] or played
    times = np.array([slot.response_time_s for slot in calm]) * 1000
    return Metrics(
        mean_ms=float(times.mean()),
        median_ms=float(np.median(times)),
        p95_ms=float(np.percentile(times, 95)),
        replicas=float(np.mean([slot.replicas for slot in calm])) + 1,  # and the source
        downtime_pct=100 * sum(slot.downtime_s for slot in played) / (len(played) * SLOT_S),
        violations_pct=100 * float(np.mean([slot.violated for slot in calm])),
        all_violations_pct=100 * float(np.mean([s.violated for s in played if s.at_s > _SKIPPED_AT_START_S])),
        reconfigurations=len(changes),
        last_change_s=max(changes, default=0.0),
    )
