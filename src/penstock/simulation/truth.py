"""What managers of simulated operators are given: the truth, or a model as wrong as a paper's."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats
from penstock.control.forecasting import wanted
from penstock.control.spec import OperatorSpec
from penstock.domain.application import Application
from penstock.domain.objective import Objective, Weights
from penstock.perf.deployments import known_deployments, with_types
from penstock.perf.queueing import m_m_1, queue_as_known
from penstock.policy.api import OperatorPolicy
from penstock.policy.knowledge import ApplicationKnowledge, OperatorKnowledge
from penstock.policy.rl.post_decision import BelievedModel
from penstock.runtimes.sim.episode import Foresight, single_replica, starting_type
from penstock.simulation.presets import FirstReplica, Variant, scenario
from penstock.simulation.spec import Setting

SLOT_S = 60.0
TRAINING_SLOTS = 44_000  # the last month of the Taxi trace, which the published planner trains on


def foresight_of(spec: Setting) -> Foresight | None:
    """How loads are forecast, if they are."""
    forecast = wanted(spec.forecast, spec.operator_policy)
    return None if forecast is None else lambda rates: forecast.forecaster(SLOT_S, rates)


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """A simulated infrastructure with the loads of a run, for the operators managed on it."""

    setting: Setting
    rates: Floats  # of the slots to simulate
    training: Floats  # slots a planner may learn transitions from
    rngs: Mapping[str, Generator]  # by operator: draws the errors in a policy's model
    application: Application | None = None
    objective: Objective | None = None  # of that application
    weights: Weights | None = None  # that managers decide by, where not the setting's
    delays_s: Mapping[str, float] = field(default_factory=dict)

    def of_operator(self, one: OperatorSpec) -> OperatorKnowledge:
        setting = self.setting
        where = scenario(setting.infrastructure, setting.variant)
        node_types = where.infrastructure.node_types
        known = OperatorKnowledge(
            node_types=node_types,
            deployments=known_deployments(node_types, one.max_replicas),
            queue=queue_as_known(one.service_time_s, one.service_scv, one.batching),
            service_time_s=one.service_time_s,
            service_scv=one.service_scv,
            max_response_time_s=one.bound_s,
            weights=self.weights or setting.weights,
            cost_scale=one.max_replicas * where.normalising_price,
            levels=setting.levels,
            max_rate=setting.max_rate,
            rates=self.rates,
            training=self.training,
            model=lambda: believed_model(known, setting.variant, self.rngs[one.name]),
            as_published=setting.as_published,
            published_updates=setting.updates_as_published,
        )
        return known

    def of_application(self) -> ApplicationKnowledge:
        if self.application is None or self.objective is None:
            raise TypeError("only an application's simulation knows its application")
        setting = self.setting
        return ApplicationKnowledge(
            application=self.application,
            objective=self.objective,
            node_types=scenario(setting.infrastructure, setting.variant).infrastructure.node_types,
            training=self.training,
            max_rate=setting.max_rate,
            interval_s=SLOT_S,
            levels=setting.levels,
            delays_s=self.delays_s,
            as_published=setting.variant.ignore_speedups,
        )


def believed_model(known: OperatorKnowledge, variant: Variant, rng: Generator) -> BelievedModel:
    """What QL+PDS+ is given (Russo 2023, sec. 6.2): service off by 5-10 %, speeds by up to 20 %."""
    mean = known.service_time_s
    error = rng.choice([-1.0, 1.0]) * rng.uniform(0.05, 0.10)
    speedup = np.array([t.speedup for t in known.node_types])
    low, high = 0.8 * speedup, 1.2 * speedup
    if variant.error_on_service_time:
        mean *= 1.0 + error
        order = np.argsort(speedup, kind="stable")
        # In the published code no guess passes a neighbour's true speed.
        for slower, faster in pairwise(order):
            high[slower] = min(high[slower], speedup[faster])
            low[faster] = max(low[faster], speedup[slower])
    else:
        mean /= 1.0 + error
    believed = with_types(known.deployments, speedup=rng.uniform(low, high), price=known.deployments.price)
    queue = known.queue._replace(service_time_s=mean) if known.queue.in_batches else m_m_1(mean)
    return BelievedModel(deployments=believed, queue=queue)


def first_deployment(known: OperatorKnowledge, policy: OperatorPolicy[object], first: FirstReplica) -> int:
    """The deployment an operator starts with: one replica."""
    match first:
        case FirstReplica.POLICY:
            node_type = starting_type(known, policy)
        case FirstReplica.CHEAPEST:
            node_type = int(np.argmin(known.deployments.price))
        case FirstReplica.FASTEST:
            node_type = int(np.argmax(known.deployments.speedup))
        case FirstReplica.FIRST:
            node_type = 0
    return single_replica(known, node_type)
