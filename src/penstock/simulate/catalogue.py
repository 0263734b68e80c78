"""Policies by name, built for one operator of one experiment."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.perf.deployments import Deployments, cost_of, deployments, handle_of, speed_of, with_types
from penstock.perf.operator import response_time
from penstock.perf.queueing import QueueModel, m_g_1, m_m_1
from penstock.policies.kernel import CompiledPolicy
from penstock.policies.operator.drs import Drs
from penstock.policies.operator.ds2 import Ds2
from penstock.policies.operator.fixed import Fixed
from penstock.policies.operator.heinze import Heinze
from penstock.policies.operator.linear_q import LinearQ
from penstock.policies.operator.lohrmann import Lohrmann
from penstock.policies.operator.model_based import ModelBased
from penstock.policies.operator.node_choice import NodeChoice
from penstock.policies.operator.q_learning import QLearning
from penstock.policies.operator.q_learning_pds import PdsLearning
from penstock.policies.operator.threshold import Threshold
from penstock.policies.operator.value_iteration import ValueIteration
from penstock.policies.rl.post_decision import BelievedModel
from penstock.policies.rl.problem import Problem, operator_problem
from penstock.simulate.presets import scenario
from penstock.simulate.spec import Spec

Policy = CompiledPolicy[Any]

TRAINING_SLOTS = 44_000  # the last month of the Taxi trace, which the published planner trains on


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """The operator of an experiment, as its policy's builder sees it."""

    spec: Spec
    node_types: tuple[NodeType, ...]
    deployments: Deployments
    queue: QueueModel
    cost_scale: float
    rates: Floats  # the slots to simulate
    training: Floats  # slots a planner may learn transitions from
    rng: Generator  # for what a policy gets wrong about its model
    believed: BelievedModel | None = None  # what QL+PDS+ is told; None draws it with the paper's errors

    @property
    def problem(self) -> Problem:
        return operator_problem(
            self.deployments,
            levels=self.spec.levels,
            max_rate=self.spec.max_rate,
            max_response_time_s=self.spec.slo_s,
            weights=self.spec.weights,
            cost_scale=self.cost_scale,
        )


@lru_cache(maxsize=32)
def _deployments(node_types: tuple[NodeType, ...], max_replicas: int) -> Deployments:
    return deployments(node_types, max_replicas)


def operator_of(spec: Spec, rates: Floats, training: Floats, rng: Generator) -> Operator:
    """The simulated operator a specification describes."""
    where = scenario(spec.infrastructure, spec.variant)
    return Operator(
        spec=spec,
        node_types=where.infrastructure.node_types,
        deployments=_deployments(where.infrastructure.node_types, spec.max_replicas),
        queue=m_g_1(1.0 / spec.service_rate, spec.service_scv),
        cost_scale=spec.max_replicas * where.normalising_price,
        rates=rates,
        training=training,
        rng=rng,
    )


def measured_operator(
    spec: Spec, node_types: tuple[NodeType, ...], rates: Floats, rng: Generator
) -> Operator:
    """An operator as it was measured, on nodes as they are; its policy is told what was measured."""
    space = _deployments(node_types, spec.max_replicas)
    queue = m_g_1(1.0 / spec.service_rate, spec.service_scv)
    dearest = max(node_type.price for node_type in node_types)
    return Operator(
        spec=spec,
        node_types=node_types,
        deployments=space,
        queue=queue,
        cost_scale=spec.max_replicas * (dearest or 1.0),
        rates=rates,
        training=rates,
        rng=rng,
        believed=BelievedModel(deployments=space, queue=queue),
    )


def _fixed(op: Operator) -> Policy:
    """Static peak provisioning: the cheapest identical replicas that meet the objective at the peak.

    Where none does, those that come closest: the fastest response, then the most capacity.
    """
    peak = float(op.rates.max())
    candidates = [
        Replicas(tuple(count if index == node_type else 0 for index in range(len(op.node_types))))
        for node_type in range(len(op.node_types))
        for count in (
            [op.spec.replicas] if op.spec.replicas is not None else range(1, op.spec.max_replicas + 1)
        )
    ]

    def merit(replicas: Replicas) -> tuple[float, float]:
        handle = handle_of(op.deployments, replicas)
        time = response_time(op.queue, op.deployments, handle, peak)
        if time <= op.spec.slo_s:
            return 0.0, cost_of(op.deployments, handle)
        return time, -speed_of(op.deployments, handle)

    return Fixed(node_types=op.node_types, deployments=op.deployments, replicas=min(candidates, key=merit))


def _threshold(choice: NodeChoice) -> Callable[[Operator], Policy]:
    return lambda op: Threshold(
        node_types=op.node_types,
        deployments=op.deployments,
        node_choice=choice,
        threshold=op.spec.variant.threshold,
        beta=op.spec.beta,
        worst_replica=op.spec.as_published,
    )


def _q_learning(op: Operator) -> Policy:
    return QLearning(
        node_types=op.node_types,
        deployments=op.deployments,
        problem=op.problem,
        gamma=op.spec.gamma,
        expected_steps=op.rates.size,
    )


def _pds(*, estimate: bool) -> Callable[[Operator], Policy]:
    return lambda op: PdsLearning(
        node_types=op.node_types,
        deployments=op.deployments,
        problem=op.problem,
        believed=(op.believed or believed_model(op)) if estimate else None,
        gamma=op.spec.gamma,
        as_published=op.spec.updates_as_published,
        expected_steps=op.rates.size,
    )


def believed_model(op: Operator) -> BelievedModel:
    """What QL+PDS+ is told (Russo 2023, sec. 6.2): service off by 5-10 %, speeds by up to 20 %."""
    mean = 1.0 / op.spec.service_rate
    error = op.rng.choice([-1.0, 1.0]) * op.rng.uniform(0.05, 0.10)
    speedup = np.array([t.speedup for t in op.node_types])
    low, high = 0.8 * speedup, 1.2 * speedup
    if op.spec.variant.error_on_service_time:
        mean *= 1.0 + error
        order = np.argsort(speedup, kind="stable")
        # In the published code no guess passes a neighbour's true speed.
        for slower, faster in pairwise(order):
            high[slower] = min(high[slower], speedup[faster])
            low[faster] = max(low[faster], speedup[slower])
    else:
        mean /= 1.0 + error
    believed = with_types(op.deployments, speedup=op.rng.uniform(low, high), price=op.deployments.price)
    return BelievedModel(deployments=believed, queue=m_m_1(mean))


def _linear_q(op: Operator) -> Policy:
    return LinearQ(
        node_types=op.node_types,
        deployments=op.deployments,
        problem=op.problem,
        gamma=op.spec.gamma,
        as_published=op.spec.updates_as_published,
    )


def _model_based(op: Operator) -> Policy:
    return ModelBased(
        node_types=op.node_types,
        deployments=op.deployments,
        problem=op.problem,
        gamma=op.spec.gamma,
        as_published=op.spec.updates_as_published,
    )


def _value_iteration(op: Operator) -> Policy:
    return ValueIteration(
        node_types=op.node_types,
        deployments=op.deployments,
        problem=op.problem,
        queue=op.queue,
        training=op.training,
        gamma=op.spec.gamma,
    )


def _heinze(choice: NodeChoice) -> Callable[[Operator], Policy]:
    return lambda op: Heinze(
        node_types=op.node_types,
        deployments=op.deployments,
        node_choice=choice,
        gamma=op.spec.gamma,
        as_published=op.spec.updates_as_published,
    )


def _drs(choice: NodeChoice) -> Callable[[Operator], Policy]:
    return lambda op: Drs(
        node_types=op.node_types,
        deployments=op.deployments,
        node_choice=choice,
        service_time_s=1.0 / op.spec.service_rate,
        max_response_time_s=op.spec.slo_s,
        as_published=op.spec.variant.ignore_speedups,
    )


def _lohrmann(choice: NodeChoice) -> Callable[[Operator], Policy]:
    return lambda op: Lohrmann(
        node_types=op.node_types,
        deployments=op.deployments,
        node_choice=choice,
        service_time_s=1.0 / op.spec.service_rate,
        service_scv=op.spec.service_scv,
        max_response_time_s=op.spec.slo_s,
        as_published=op.spec.variant.ignore_speedups,
    )


def _ds2(op: Operator) -> Policy:
    return Ds2(node_types=op.node_types, deployments=op.deployments)


POLICIES: dict[str, Callable[[Operator], Policy]] = {
    "fixed": _fixed,
    "threshold-c": _threshold(NodeChoice.CHEAPEST),
    "threshold-s": _threshold(NodeChoice.FASTEST),
    "threshold-0": _threshold(NodeChoice.FIRST),
    "ql": _q_learning,
    "ql-pds": _pds(estimate=False),
    "ql-pds-plus": _pds(estimate=True),
    "ql-fa": _linear_q,
    "model-based": _model_based,
    "vi": _value_iteration,
    "heinze-c": _heinze(NodeChoice.CHEAPEST),
    "heinze-s": _heinze(NodeChoice.FASTEST),
    "drs-c": _drs(NodeChoice.CHEAPEST),
    "drs-s": _drs(NodeChoice.FASTEST),
    "drs-0": _drs(NodeChoice.FIRST),
    "lohrmann-c": _lohrmann(NodeChoice.CHEAPEST),
    "lohrmann-s": _lohrmann(NodeChoice.FASTEST),
    "lohrmann-0": _lohrmann(NodeChoice.FIRST),
    "ds2": _ds2,
}
SEEDED = frozenset({"ql", "ql-pds-plus", "ql-fa"})  # the others do the same whatever the seed
# They decide by what they measure alone, whatever response time is wanted.
WITHOUT_BOUNDS = frozenset({"threshold-c", "threshold-s", "threshold-0", "ds2", "heinze-c", "heinze-s"})


def check_policy_name(name: str) -> None:
    if name not in POLICIES:
        spelt = name.lower().replace("+", "-plus")
        near = difflib.get_close_matches(spelt, POLICIES, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"choose one of {', '.join(POLICIES)}"
        raise InputError(f"policy '{name}': unknown; {hint}")


def build_policy(op: Operator) -> Policy:
    check_policy_name(op.spec.policy)
    return POLICIES[op.spec.policy](op)
