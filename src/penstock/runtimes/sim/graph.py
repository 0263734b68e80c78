"""The slotted simulation of a whole application: operators in the order of the graph.

Operator Managers see only their own operator, so nothing flows upstream: an operator's
whole episode can run once those of its suppliers are known, slot for slot the same as
running all operators side by side.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled_allocating, read_only
from penstock.control.build import Knowledge
from penstock.control.spec import ControllerSpec
from penstock.domain.application import Application
from penstock.domain.objective import Objective
from penstock.perf.cost import interval_cost
from penstock.perf.deployments import Deployments, cost_of
from penstock.perf.latency import end_to_end, violated
from penstock.perf.operator import response_time, throughput
from penstock.perf.queueing import QueueModel
from penstock.policy.api import OperatorPolicy
from penstock.policy.knowledge import OperatorKnowledge
from penstock.runtimes.sim.episode import (
    Foresight,
    World,
    decided,
    no_totals,
    play,
    single_replica,
    starting_type,
    trail_of,
    world_of,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedOperator:
    """One operator of a simulated application: what is true of it, and who manages it."""

    world: World
    policy: OperatorPolicy[Any]
    memory: Any  # of that policy; a compiled one's is changed by the run
    first_deployment: int
    rng: Generator


FirstDeployment = Callable[[OperatorKnowledge, OperatorPolicy[Any]], int]


def own_choice(known: OperatorKnowledge, policy: OperatorPolicy[Any]) -> int:
    """One replica of the type the policy would start with."""
    return single_replica(known, starting_type(known, policy))


def managed_operators(
    spec: ControllerSpec,
    knowledge: Knowledge,
    rngs: Mapping[str, Generator],
    *,
    first: FirstDeployment = own_choice,
    charge_before: bool = False,
) -> dict[str, ManagedOperator]:
    """Every operator of a specification exactly as its manager knows it, and that manager."""
    managed: dict[str, ManagedOperator] = {}
    for one in spec.operators:
        known = knowledge.of_operator(one)
        policy = spec.operator_policy.for_operator(known)
        managed[one.name] = ManagedOperator(
            world=world_of(known, charge_before=charge_before),
            policy=policy,
            memory=policy.initial(),
            first_deployment=first(known, policy),
            rng=rngs[one.name],
        )
    return managed


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationRun:
    """An application slot by slot."""

    response_time_s: Floats  # end to end
    violated: Ints
    reconfigured: Ints  # whether any operator was
    resources: Floats  # price of all operators
    cost: Floats
    deployments: Mapping[str, Ints]  # handle in force, per operator
    decided: Mapping[str, Ints]  # handle chosen in the slot, per operator
    arrival_rates: Mapping[str, Floats]


def run_application(
    application: Application,
    objective: Objective,
    operators: Mapping[str, ManagedOperator],
    source_rates: Floats,
    *,
    latency_at_source_rate: bool = False,
    passes_all: bool = False,
    foresight: Foresight | None = None,
) -> ApplicationRun:
    """Run every operator's policy over the rates that reach it.

    `latency_at_source_rate` evaluates response times as if every operator received the
    source's rate, as the published simulator does; its managers see the real rate either way.
    `passes_all` lets a saturated operator pass on all it receives (Russo 2018: lambda_o = Lambda).
    """
    slots = source_rates.size
    leaving: dict[str, Floats] = {source.name: source_rates for source in application.sources}
    arriving: dict[str, Floats] = {}
    handles: dict[str, Ints] = {}
    choices: dict[str, Ints] = {}
    times: dict[str, Floats] = {}
    resources, reconfigured = np.zeros(slots), np.zeros(slots, dtype=np.int64)
    for operator in application.in_order:
        managed = operators[operator.name]
        world = managed.world
        rates = read_only(np.sum([leaving[name] for name in application.upstream(operator.name)], axis=0))
        trail = trail_of(slots)
        totals = no_totals(world.deployments.speedup.size)
        last, _ = play(
            world,
            managed.policy,
            managed.memory,
            rates,
            managed.first_deployment,
            managed.rng,
            totals,
            trail,
            foresight=foresight,
        )
        times[operator.name] = (
            _response_times(world.queue, world.deployments, trail.deployment, source_rates)
            if latency_at_source_rate
            else trail.response_time_s
        )
        chosen = decided(trail, last)
        resources += _costs(world.deployments, trail.deployment if world.charge_before else chosen)
        reconfigured |= trail.reconfigured
        passed = (
            rates if passes_all else _throughputs(world.queue, world.deployments, trail.deployment, rates)
        )
        leaving[operator.name] = operator.selectivity * passed
        arriving[operator.name] = rates
        handles[operator.name] = trail.deployment
        choices[operator.name] = chosen
    late = violated(application, objective, times)
    scale = sum(operators[operator.name].world.cost_scale for operator in application.operators)
    return ApplicationRun(
        response_time_s=end_to_end(application, times),
        violated=late.astype(np.int64),
        reconfigured=reconfigured,
        resources=resources,
        cost=interval_cost(objective.weights, late, resources / scale, reconfigured),
        deployments=handles,
        decided=choices,
        arrival_rates=arriving,
    )


@compiled_allocating
def _response_times(queue: QueueModel, space: Deployments, handles: Ints, rates: Floats) -> Floats:
    times = np.empty(rates.size)
    for slot in range(rates.size):
        times[slot] = response_time(queue, space, handles[slot], rates[slot])
    return times


@compiled_allocating
def _throughputs(queue: QueueModel, space: Deployments, handles: Ints, rates: Floats) -> Floats:
    passed = np.empty(rates.size)
    for slot in range(rates.size):
        passed[slot] = throughput(queue, space, handles[slot], rates[slot])
    return passed


@compiled_allocating
def _costs(space: Deployments, handles: Ints) -> Floats:
    costs = np.empty(handles.size)
    for slot in range(handles.size):
        costs[slot] = cost_of(space, handles[slot])
    return costs
