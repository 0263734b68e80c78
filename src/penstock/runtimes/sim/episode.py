"""The slotted simulation of one operator: one slot, and a whole episode of them, compiled.

A slot (reference: the published simulator): the rate arrives; the response time is that of
the deployment in force; the policy sees both, learns and decides; its decision applies at
once. Reconfigurations take no time and never fail, nodes never run out, and a saturated
operator carries no backlog into the next slot.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled, compiled_uncached, is_ours
from penstock.domain.deployment import Replicas
from penstock.perf.cost import compiled_interval_cost
from penstock.perf.deployments import Deployments, cost_of, count_of, handle_of
from penstock.perf.forecast import Forecaster
from penstock.perf.operator import mean_utilisation, response_time, utilisation
from penstock.perf.queueing import QueueModel
from penstock.policy.api import OperatorPolicy
from penstock.policy.kernel import Seen, is_compiled, step
from penstock.policy.knowledge import OperatorKnowledge

Foresight = Callable[[Floats], Forecaster]  # of a series of rates


class World(NamedTuple):
    """What is true of the simulated operator, whether its policy knows it or not."""

    deployments: Deployments
    queue: QueueModel
    max_response_time_s: float
    performance: float  # weights
    resources: float
    reconfiguration: float
    cost_scale: float  # C_max
    charge_before: bool  # pay for the deployment in force before the decision, as the published code does


def world_of(
    known: OperatorKnowledge, space: Deployments | None = None, *, charge_before: bool = False
) -> World:
    """An operator exactly as it is known, where `space` is not given with its own speeds and prices."""
    weights = known.weights
    return World(
        deployments=known.deployments if space is None else space,
        queue=known.queue,
        max_response_time_s=known.max_response_time_s,
        performance=weights.performance,
        resources=weights.resources,
        reconfiguration=weights.reconfiguration,
        cost_scale=known.cost_scale,
        charge_before=charge_before,
    )


def single_replica(known: OperatorKnowledge, node_type: int) -> int:
    """The deployment with one replica of this type."""
    counts = tuple(int(index == node_type) for index in range(len(known.node_types)))
    return handle_of(known.deployments, Replicas(counts))


def starting_type(known: OperatorKnowledge, policy: OperatorPolicy[Any]) -> int:
    """Node type of the replica a policy would start with: the cheapest unless it says otherwise."""
    own: Callable[[], int] | None = getattr(policy, "starting_type", None)
    return int(np.argmin(known.deployments.price)) if own is None else own()


class Totals(NamedTuple):
    """Sums over the slots so far."""

    counts: Ints  # [slots, violations, reconfigurations]
    resources: Floats  # [cost of resources]
    replicas: Floats  # per node type, after each decision


class Trail(NamedTuple):
    """What happened slot by slot; empty arrays when nobody asked."""

    deployment: Ints  # in force during the slot
    response_time_s: Floats
    cost: Floats
    reconfigured: Ints


class Slot(NamedTuple):
    """One slot's outcome."""

    response_time_s: float
    violated: bool
    reconfigured: bool
    resources: float
    cost: float


def no_totals(node_types: int) -> Totals:
    return Totals(np.zeros(3, dtype=np.int64), np.zeros(1), np.zeros(node_types))


def trail_of(slots: int) -> Trail:
    return Trail(
        np.zeros(slots, dtype=np.int64), np.zeros(slots), np.zeros(slots), np.zeros(slots, dtype=np.int64)
    )


def part_of(trail: Trail, start: int, end: int) -> Trail:
    """The slots from `start` to `end` of a trail, sharing its memory."""
    return Trail(
        trail.deployment[start:end],
        trail.response_time_s[start:end],
        trail.cost[start:end],
        trail.reconfigured[start:end],
    )


def decided(trail: Trail, last: int) -> Ints:
    """The deployment chosen in each slot: in force in the next one, `last` after the end."""
    return np.append(trail.deployment[1:], last)


@compiled
def observe(world: World, here: int, rate: float) -> Seen:
    """What the operator's manager sees of this slot."""
    return Seen(
        here,
        rate,
        response_time(world.queue, world.deployments, here, rate),
        utilisation(world.queue, world.deployments, here, rate),
        mean_utilisation(world.queue, world.deployments, here, rate),
    )


@compiled
def settle(world: World, seen: Seen, target: int) -> Slot:
    """What the slot cost, given the decision taken in it."""
    violated = seen.response_time_s > world.max_response_time_s
    reconfigured = target != seen.deployment
    resources = cost_of(world.deployments, seen.deployment if world.charge_before else target)
    cost = compiled_interval_cost(
        world, 1.0 if violated else 0.0, resources / world.cost_scale, 1.0 if reconfigured else 0.0
    )
    return Slot(seen.response_time_s, violated, reconfigured, resources, cost)


def run(
    world: World, memory: Any, rates: Floats, here: int, rng: Generator, totals: Totals, trail: Trail
) -> int:
    """Run the policy over these rates from deployment `here`; returns the deployment at the end."""
    episode = _cached_episode if is_ours(type(memory)) else _uncached_episode
    return episode(world, memory, rates, here, rng, totals, trail)


def _episode(
    world: World, memory: Any, rates: Floats, here: int, rng: Generator, totals: Totals, trail: Trail
) -> int:
    recording = trail.deployment.size > 0
    violations = 0
    reconfigurations = 0
    resources = 0.0
    for index in range(rates.size):
        seen = observe(world, here, rates[index])
        target, _ = step(memory, seen, rng)
        slot = settle(world, seen, target)
        violations += slot.violated
        reconfigurations += slot.reconfigured
        resources += slot.resources
        if recording:
            trail.deployment[index] = here
            trail.response_time_s[index] = slot.response_time_s
            trail.cost[index] = slot.cost
            trail.reconfigured[index] = slot.reconfigured
        here = target
        for node_type in range(totals.replicas.size):
            totals.replicas[node_type] += count_of(world.deployments, here, node_type)
    totals.counts[0] += rates.size
    totals.counts[1] += violations
    totals.counts[2] += reconfigurations
    totals.resources[0] += resources
    return here


_cached_episode = compiled(_episode)
_uncached_episode = compiled_uncached(_episode)


def play(
    world: World,
    policy: OperatorPolicy[Any],
    memory: Any,
    rates: Floats,
    here: int,
    rng: Generator,
    totals: Totals,
    trail: Trail,
    *,
    slots_before: int = 0,
    foresight: Foresight | None = None,
) -> tuple[int, Any]:
    """Run a policy over these rates from deployment `here`: compiled where its step is, else by the loop.

    Returns the deployment and memory at the end. `foresight` adds forecasts to what the loop observes.
    """
    if is_compiled(memory):
        return run(world, memory, rates, here, rng, totals, trail), memory
    from penstock.runtimes.sim.operator import play_by_loop  # no compiled policy needs the loop

    return play_by_loop(
        world,
        policy,
        memory,
        rates,
        here,
        rng,
        totals,
        trail,
        slots_before=slots_before,
        foresight=foresight,
    )
