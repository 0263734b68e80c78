"""Twelve hours of the application of Cardellini 2018, simulated: one row of its Table 1, one seed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple

import numpy as np

from penstock.apps.top_routes.graph import (
    BOUNDS_S,
    OBJECTIVE_S,
    PARTIAL_RANK_SCV,
    REFRESH_DELAY_S,
    top_routes_graph,
)
from penstock.compiled import Floats
from penstock.control.hierarchy import Managers
from penstock.control.loop import Controller, in_place, memory_with, tick
from penstock.control.ports import Unwritten
from penstock.domain.application import Operator
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective, Weights
from penstock.perf.deployments import Deployments, deployments
from penstock.perf.downtime import PauseAndResume
from penstock.perf.queueing import m_g_1
from penstock.policy.api import ApplicationPolicy, OperatorPolicy
from penstock.policy.application.grant_all import GrantAll
from penstock.policy.application.token_bucket import TokenBucket
from penstock.policy.operator.model_based import ModelBased, Sweeps
from penstock.policy.operator.node_choice import NodeChoice
from penstock.policy.operator.q_learning import LearningRates, QLearning
from penstock.policy.operator.threshold import Threshold
from penstock.policy.rl.problem import Problem, operator_problem
from penstock.runtimes.sim.application import ColdStart, OperatorModel, PlayedSlot, SimulatedApplication

SLOT_S = 30.0
R_MAX_S = OBJECTIVE_S
SLOTS = 1440  # 12 hours
_NODE = NodeType(name="worker", speedup=1.0, price=1.0)
SKIPPED_AT_START_S = 30 * 60.0
_SKIPPED_AFTER_CHANGE_S = 120.0
_RATES = LearningRates(
    alpha_start=0.1,
    alpha_factor=1.0,
    alpha_floor=0.1,
    epsilon_start=0.05,
    epsilon_factor=1.0,
    epsilon_floor=0.05,
)
_QUANTUM, _LEVELS = 50.0, 11
PAUSE_S = 10.0


# Storm's worker processes, connections and caches are new: ten times the service time for ten minutes,
# inside the half hour that the paper leaves out of its measures.
COLD = ColdStart(seconds=600.0, factor=10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What the paper does not give."""

    fluctuation: float = 0.2  # of the rate from one interval to the next, standard deviation of its logarithm
    scv: float = PARTIAL_RANK_SCV  # of partialRank's service times
    refresh_s: float = REFRESH_DELAY_S  # the wait for the next refresh of the ranking
    cold_start: ColdStart = COLD


STATED = Assumed()
WARM = Assumed(cold_start=ColdStart())


class Metrics(NamedTuple):
    """A row of the table. Times leave out the start and two minutes after each change, as the paper does.

    What is measured over the slots kept is not known (nan) where none are.
    """

    mean_ms: float
    median_ms: float
    p95_ms: float
    replicas: float
    downtime_pct: float
    violations_pct: float  # of the slots kept
    all_violations_pct: float  # of all slots after the start: what a user would count
    kept_pct: float  # of the slots after the start, those kept
    reconfigurations: int
    last_change_s: float


def workload(taxi: Floats, seed: int, fluctuation: float = STATED.fluctuation) -> Floats:
    """Five days of the Taxi trace in twelve hours: ten times as fast, five times as many, and fluctuating."""
    per_slot = taxi[: 5 * 1440].reshape(SLOTS, -1).mean(axis=1)
    rates = np.clip(per_slot / 60.0 * 10 * 5, 150.0, 500.0)
    noisy: Floats = rates * np.exp(np.random.default_rng(seed).normal(0.0, fluctuation, rates.size))
    return noisy


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
        max_response_time_s=BOUNDS_S[operator.name],
        weights=weights,
    )
    if kind == "QL":
        return QLearning(node_types=(_NODE,), deployments=space, problem=problem, rates=_RATES)
    return ModelBased(
        node_types=(_NODE,),
        deployments=space,
        problem=problem,
        rates=_RATES,
        sweeps=Sweeps(every_step_until=SLOTS),
    )


def run_row(
    kind: str,
    *,
    threshold: float,
    weights: Weights,
    token_bucket: bool,
    taxi: Floats,
    seed: int,
    assumed: Assumed = STATED,
) -> Metrics:
    """Twelve hours of one local policy under one global policy."""
    rates = workload(taxi, seed, assumed.fluctuation)
    application = top_routes_graph()
    spaces = {o.name: deployments((_NODE,), o.max_replicas) for o in application.operators}
    simulated = SimulatedApplication(
        application=application,
        objective=Objective(response_time_s=R_MAX_S),
        models={
            o.name: OperatorModel(
                queue=m_g_1(o.service_time_s, assumed.scv if o.name == "partialRank" else o.service_scv),
                deployments=spaces[o.name],
                first=Replicas((1,)),
                delay_s=assumed.refresh_s if o.name == "globalRank" else 0.0,
            )
            for o in application.operators
        },
        rates=rates,
        protocol=PauseAndResume(fixed_s=PAUSE_S),
        slot_s=SLOT_S,
        cold_start=assumed.cold_start,
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
    controller = Controller(managers=managers, node_types=(_NODE,), safety=None)
    memory, journal = in_place(controller, memory_with(controller, rngs)), Unwritten()
    while not simulated.finished:
        _, memory = tick(controller, memory, simulated, journal, simulated)
    return measured(simulated.played)


def measured(played: list[PlayedSlot]) -> Metrics:
    """The table's columns from the slots."""
    changes = [slot.at_s for slot in played if slot.reconfigured]
    started = [slot for slot in played if slot.at_s > SKIPPED_AT_START_S]
    calm = [
        slot
        for slot in started
        if not any(0 < slot.at_s - change <= _SKIPPED_AFTER_CHANGE_S for change in changes)
    ]
    times = [1000 * slot.response_time_s for slot in calm]

    def over_calm(values: Sequence[float], of: Callable[[Floats], Any]) -> float:
        return float(of(np.array(values, float))) if values else nan

    return Metrics(
        mean_ms=over_calm(times, np.mean),
        median_ms=over_calm(times, np.median),
        p95_ms=over_calm(times, lambda known: np.percentile(known, 95)),
        replicas=over_calm([slot.replicas for slot in calm], np.mean) + 1,  # and the source
        downtime_pct=100 * sum(slot.downtime_s for slot in started) / (len(started) * SLOT_S),
        violations_pct=100 * over_calm([slot.violated for slot in calm], np.mean),
        all_violations_pct=100 * float(np.mean([slot.violated for slot in started])),
        kept_pct=100 * len(calm) / len(started),
        reconfigurations=len(changes),
        last_change_s=max(changes, default=0.0),
    )
