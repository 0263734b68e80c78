"""Simulating an application under its Application Manager, driven by the loop that drives a live run.

A reconfiguration pauses the application; what arrives meanwhile, and what an overloaded
application cannot take, waits at the source (`runtimes/sim/application.py`). The papers' managers
have no safety chain, so it is off.
"""

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from penstock.apps.entry import AppEntry
from penstock.apps.registry import application_entry
from penstock.compiled import Floats, read_only
from penstock.control.build import build_controller, check_application_policy
from penstock.control.forecasting import ForecastingMonitor
from penstock.control.hierarchy import PLACING
from penstock.control.loop import Controller, ControllerMemory, in_place, tick
from penstock.control.ports import Monitor, Unwritten
from penstock.control.spec import ControllerSpec
from penstock.domain.application import Application
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import Infrastructure
from penstock.perf.cost import interval_cost
from penstock.perf.deployments import known_deployments, replicas_at
from penstock.perf.downtime import PauseAndResume
from penstock.perf.queueing import queue_as_known
from penstock.perf.traffic import visits
from penstock.policy.application.tuned import Behaviour, Configuration, TuningEffort, naive
from penstock.policy.registry import Level
from penstock.runtimes.sim.application import OperatorModel, SimulatedApplication
from penstock.runtimes.sim.round_trips import RoundTrips, true_delays
from penstock.simulation.graph import managers_of, simulated_graph
from penstock.simulation.hosts import network
from penstock.simulation.presets import scenario
from penstock.simulation.result import History, SimulationResult
from penstock.simulation.spec import ManagedApplication
from penstock.simulation.truth import SLOT_S, TRAINING_SLOTS, Truth, first_deployment, foresight_of
from penstock.training.tuning import chosen_by_simulation

MONITORED_SLOTS = 50_000  # most slots of the training trace that a tuning manager simulates


@dataclass(frozen=True, kw_only=True, eq=False)
class _World:
    """A specification with everything it names looked up."""

    spec: ManagedApplication
    entry: AppEntry
    application: Application
    rates: Floats
    training: Floats

    @property
    def truth(self) -> Truth:
        spec = self.spec
        seeds = np.random.default_rng(spec.seed).spawn(2 * len(self.application.operators))
        names = [operator.name for operator in self.application.operators]
        return Truth(
            setting=spec,
            rates=self.rates,
            training=self.training,
            rngs=dict(zip(names, seeds[::2], strict=True)),
            application=self.application,
            objective=spec.objective,
            delays_s=self.entry.delays_s,
        )

    @property
    def decision_rngs(self) -> dict[str, Generator]:
        seeds = np.random.default_rng(self.spec.seed).spawn(2 * len(self.application.operators))
        return {
            operator.name: rng for operator, rng in zip(self.application.operators, seeds[1::2], strict=True)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """An application about to be simulated: the world, and its controller with nothing learned yet."""

    world: _World
    simulated: SimulatedApplication
    controller: Controller
    memory: ControllerMemory


def ready(spec: ManagedApplication, rates: Floats, training: Floats) -> Ready:
    """Everything a specification names, put together."""
    entry = application_entry(spec.application)
    world = _World(
        spec=spec,
        entry=entry,
        application=entry.graph(spec.max_replicas),
        rates=read_only(rates),
        training=training,
    )
    where = scenario(spec.infrastructure, spec.variant)
    hosts = None if spec.hosts is None else network(spec.hosts, where.infrastructure.node_types, spec.seed)
    names = () if hosts is None else tuple(node.name for node in hosts.nodes)
    # The network's generator first, then the one for placing, then every node's: results depend on the order.
    network_rng, *node_rngs = np.random.default_rng([spec.seed, len(names)]).spawn(len(names) + 2)
    managers = _managers(world)
    truth = replace(world.truth, weights=managers.weights)
    controller, memory = build_controller(managers, truth, nodes=names)
    chance = dict(zip((PLACING, *names), node_rngs, strict=True))
    # An operator without a manager has no generator of its own: its replicas are placed by PLACING.
    operators = {
        name: rng for name, rng in world.decision_rngs.items() if name in controller.managers.operators
    }
    return Ready(
        world=world,
        simulated=_simulated(world, controller, managers, hosts, network_rng),
        controller=controller,
        memory=memory._replace(rngs=chance | operators),
    )


def run_managed(
    spec: ManagedApplication, rates: Floats, training: Floats, *, with_history: bool = False
) -> SimulationResult:
    """Simulate an application under its managers."""
    made = ready(spec, rates, training)
    began = time.perf_counter()
    by_type = played(made.simulated, made.controller, made.memory, _monitor(made))
    seconds = time.perf_counter() - began
    return _result(made.world, made.simulated, by_type / rates.size, seconds, with_history)


def _monitor(made: Ready) -> Monitor:
    """The application itself or, where forecasts are wanted, with those."""
    foresight = foresight_of(made.world.spec)
    if foresight is None:
        return made.simulated
    reached, rates = visits(made.world.application), made.world.rates
    return ForecastingMonitor(made.simulated, lambda name: foresight(rates * reached[name]), SLOT_S)


def played(
    simulated: SimulatedApplication,
    controller: Controller,
    memory: ControllerMemory,
    monitor: Monitor | None = None,
) -> Floats:
    """Run the loop to the end of the trace; returns replicas by node type, summed over the slots."""
    journal = Unwritten()
    memory = in_place(controller, memory)  # the loop never goes back, and nobody reads reasons
    while not simulated.finished:
        _, memory = tick(controller, memory, monitor or simulated, journal, simulated)
    by_type: Floats = np.sum([slot.by_type for slot in simulated.played], axis=0, dtype=np.float64)
    return by_type


def _managers(world: _World) -> ControllerSpec:
    """Who decides, with bounds and weights tuned in advance if the Application Manager tunes."""
    spec = world.spec
    check_application_policy(
        spec.application_policy,
        world.application,
        scenario(spec.infrastructure, spec.variant).infrastructure.node_types,
        where=f"infrastructure '{spec.infrastructure}'",
        delays_s=world.entry.delays_s,
    )
    tunes = spec.application_policy.entry(Level.APPLICATION).traits.tunes
    chosen = tuned_configuration(world) if tunes else None
    usual = _usual_bounds(world)
    managers = managers_of(
        spec,
        world.application,
        bounds_s=usual if chosen is None else chosen.bounds_s,
        weights=None if chosen is None else chosen.weights,
    )
    return replace(
        managers,
        # What cannot be replicated needs no manager.
        operators=tuple(one for one in managers.operators if one.max_replicas > 1) or managers.operators,
        application_policy=spec.application_policy,
        node_policy=spec.node_policy,
        delays_s=world.entry.delays_s,
        application_period_s=SLOT_S,
    )


def _usual_bounds(world: _World) -> dict[str, float] | None:
    limits = [world.spec.objective.for_path(path) for path in world.application.paths]
    return None if world.entry.bounds_s is None else world.entry.bounds_s(min(limits))


def tuned_configuration(world: _World) -> Configuration:
    """Algorithm 4 from the naive configuration, and a longer look at the best.

    Operators cannot shorten constant delays: what those leave is shared out, and an operator
    that has one gets it back on top of its share, because its response times contain it.
    """
    application, known = world.application, world.truth.of_application()
    objective = known.queueing_objective
    spec = replace(world.spec, path_slo_s=tuple(objective.per_path_s.items()))
    limit_s = min(objective.for_path(path) for path in application.paths)
    manager = spec.application_policy.for_application(known)
    settings = manager if isinstance(manager, TuningEffort) else None

    def play(chosen: Configuration, rates: Floats) -> Behaviour:
        result = simulated_graph(
            spec,
            application,
            rates,
            rates[-TRAINING_SLOTS:],
            bounds_s=chosen.bounds_s,
            manager_weights=chosen.weights,
        )
        return Behaviour(
            resource_cost=result.resource_cost,
            violations=result.violations_pct / 100,
            reconfigurations=result.reconfigurations_pct / 100,
        )

    chosen = chosen_by_simulation(
        play,
        naive(application, objective),
        np.random.default_rng(spec.seed),
        application=application,
        objective=objective,
        rates=world.training[:MONITORED_SLOTS],
        fastest=max(node_type.speedup for node_type in known.node_types),
        # The mean wait of a slot that begins with a pause, whatever the rate.
        changes_are_late=spec.pause_s**2 / (2 * SLOT_S) > limit_s,
        settings=settings,
    ).best.configuration
    seen = {name: bound + known.delays_s.get(name, 0.0) for name, bound in chosen.bounds_s.items()}
    return replace(chosen, bounds_s=seen)


def _simulated(
    world: _World,
    controller: Controller,
    managers: ControllerSpec,
    hosts: Infrastructure | None,
    rng: Generator,
) -> SimulatedApplication:
    truth, node_types = world.truth, managers.node_types
    specs = {one.name: one for one in managers.operators}
    # Where the Application Manager decides itself, it may say which type it uses.
    chosen_type = int(getattr(controller.managers.application, "chosen_type", 0))

    def first(name: str) -> Replicas:
        policy = controller.managers.operators.get(name)
        if policy is None:
            return Replicas(tuple(int(index == chosen_type) for index in range(len(node_types))))
        known = truth.of_operator(specs[name])
        return replicas_at(
            known.deployments, first_deployment(known, policy, world.spec.variant.first_replica)
        )

    return SimulatedApplication(
        application=world.application,
        objective=world.spec.objective,
        models={
            operator.name: OperatorModel(
                queue=queue_as_known(operator.service_time_s, operator.service_scv, operator.batching),
                deployments=known_deployments(node_types, operator.max_replicas),
                first=first(operator.name),
                delay_s=world.entry.delays_s.get(operator.name, 0.0),
            )
            for operator in world.application.operators
        },
        rates=world.rates,
        protocol=PauseAndResume(fixed_s=world.spec.pause_s),
        slot_s=SLOT_S,
        infrastructure=hosts,
        round_trips=None if hosts is None else RoundTrips(true_delays(hosts), rng),
    )


def _result(
    world: _World, simulated: SimulatedApplication, by_type: Floats, seconds: float, with_history: bool
) -> SimulationResult:
    played_slots, spec = simulated.played, world.spec
    late = np.array([slot.violated for slot in played_slots], dtype=np.float64)
    changed = np.array([slot.reconfigured for slot in played_slots], dtype=np.float64)
    resources = np.array([slot.resources for slot in played_slots])
    most = sum(operator.max_replicas for operator in world.application.operators)
    scale = most * scenario(spec.infrastructure, spec.variant).normalising_price
    cost: Floats = interval_cost(spec.weights, late, resources / scale, changed)
    return SimulationResult(
        spec=spec,
        slots=len(played_slots),
        avg_cost=float(cost.mean()),
        violations_pct=100 * float(late.mean()),
        reconfigurations_pct=100 * float(changed.mean()),
        resource_cost=float(resources.mean()),
        replicas_by_type=tuple(float(mean) for mean in by_type),
        seconds=seconds,
        downtime_pct=100 * sum(slot.downtime_s for slot in played_slots) / (len(played_slots) * SLOT_S),
        migrations=None if spec.hosts is None else sum(slot.migrations for slot in played_slots),
        history=History(
            cost=cost,
            response_time_s=np.array([slot.response_time_s for slot in played_slots]),
            replicas=np.array([slot.replicas for slot in played_slots], dtype=np.float64),
            resources=resources,
        )
        if with_history
        else None,
    )
