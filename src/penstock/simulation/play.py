"""Running specifications: one, or many in parallel, with the same numbers either way."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.apps.named import application_named, constant_delays_s
from penstock.compiled import Floats, Ints, read_only
from penstock.domain.application import Application
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.objective import Weights
from penstock.domain.trace import Trace
from penstock.perf.deployments import Deployments, counts_at, handle_of, with_types
from penstock.perf.latency import check_objective, equal_shares
from penstock.runtimes.sim.episode import Trail, World, decided, no_totals, part_of, run, trail_of
from penstock.runtimes.sim.network import ManagedOperator, run_application
from penstock.simulation.catalogue import TRAINING_SLOTS, Operator, Policy, build_policy, operator_of
from penstock.simulation.presets import FirstReplica
from penstock.simulation.spec import Spec


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What happened slot by slot."""

    cost: Floats
    response_time_s: Floats
    replicas: Floats  # in all, in force during the slot
    resources: Floats  # as charged in `cost`: by default for the deployment decided on in the slot


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """What an experiment measured."""

    spec: Spec
    slots: int
    avg_cost: float
    violations_pct: float
    reconfigurations_pct: float
    resource_cost: float  # mean price of the deployment, not normalised
    replicas_by_type: tuple[float, ...]  # mean, after each decision
    seconds: float  # of the simulation loop
    history: History | None = None
    downtime_pct: float | None = None  # of the time, where reconfigurations take any
    migrations: int | None = None  # where there are nodes to move between

    @property
    def mean_replicas(self) -> float:
        return sum(self.replicas_by_type)

    @property
    def slots_per_s(self) -> float:
        return self.slots / self.seconds if self.seconds > 0 else float("inf")


def first_deployment(op: Operator, policy: Policy) -> int:
    match op.spec.variant.first_replica:
        case FirstReplica.POLICY:
            node_type = policy.starting_type()
        case FirstReplica.CHEAPEST:
            node_type = int(np.argmin(op.deployments.price))
        case FirstReplica.FASTEST:
            node_type = int(np.argmax(op.deployments.speedup))
        case FirstReplica.FIRST:
            node_type = 0
    counts = tuple(int(index == node_type) for index in range(len(op.node_types)))
    return handle_of(op.deployments, Replicas(counts))


def world_of(op: Operator, space: Deployments) -> World:
    weights = op.spec.weights
    return World(
        deployments=space,
        queue=op.queue,
        max_response_time_s=op.spec.slo_s,
        performance=weights.performance,
        resources=weights.resources,
        reconfiguration=weights.reconfiguration,
        cost_scale=op.cost_scale,
        charge_before=op.spec.variant.charge_before,
    )


def _stages(op: Operator) -> list[tuple[int, Deployments]]:
    """From which slot on which speeds and prices hold."""
    spec, space = op.spec, op.deployments
    changes = sorted((c for c in (spec.price_change, spec.speed_change) if c), key=lambda c: c.slot)
    stages = [(0, space)]
    others = np.arange(len(op.node_types)) < len(op.node_types) - 1
    for change in changes:
        latest = stages[-1][1]
        factor = np.where(others, change.factor, 1.0)
        stages.append(
            (
                change.slot,
                with_types(
                    latest,
                    speedup=latest.speedup * (factor if change is spec.speed_change else 1.0),
                    price=latest.price * (factor if change is spec.price_change else 1.0),
                ),
            )
        )
    return stages


def run_spec(
    spec: Spec, rates: Floats, *, training: Floats | None = None, with_history: bool = False
) -> SimulationResult:
    """Simulate one specification over these rates: one operator, or every operator of an application."""
    rates = read_only(Trace("rates", np.asarray(rates, dtype=np.float64)).rates)  # checked
    simulate = _run_operator if spec.application is None else _run_application
    return simulate(spec, rates, rates[-TRAINING_SLOTS:] if training is None else training, with_history)


def _run_operator(spec: Spec, rates: Floats, training: Floats, with_history: bool) -> SimulationResult:
    model_rng, policy_rng = np.random.default_rng(spec.seed).spawn(2)
    op = operator_of(spec, rates, training, model_rng)
    policy = build_policy(op)
    memory = policy.initial()
    here = first_deployment(op, policy)
    totals = no_totals(len(op.node_types))
    trail = trail_of(rates.size if with_history else 0)
    stages = _stages(op)
    ends = [slot for slot, _ in stages[1:]] + [rates.size]
    run(
        world_of(op, op.deployments), memory, rates[:0], here, policy_rng, totals, trail
    )  # compile before timing
    seconds = 0.0
    latest = op.deployments
    for (start, space), end in zip(stages, ends, strict=True):
        if space is not latest:
            memory, latest = policy.informed(memory, latest, space), space
        part = part_of(trail, start, end)
        began = time.perf_counter()
        here = run(world_of(op, space), memory, rates[start:end], here, policy_rng, totals, part)
        seconds += time.perf_counter() - began
    slots, violations, reconfigurations = (int(count) for count in totals.counts)
    resource_cost = float(totals.resources[0]) / slots
    weights = spec.weights
    return SimulationResult(
        spec=spec,
        slots=slots,
        avg_cost=weights.performance * violations / slots
        + weights.reconfiguration * reconfigurations / slots
        + weights.resources * resource_cost / op.cost_scale,
        violations_pct=100 * violations / slots,
        reconfigurations_pct=100 * reconfigurations / slots,
        resource_cost=resource_cost,
        replicas_by_type=tuple(float(total) / slots for total in totals.replicas),
        seconds=seconds,
        history=_history(stages, ends, trail, _charged(op, trail, here)) if with_history else None,
    )


def _charged(op: Operator, trail: Trail, last: int) -> Ints:
    return trail.deployment if op.spec.variant.charge_before else decided(trail, last)


def _history(stages: list[tuple[int, Deployments]], ends: list[int], trail: Trail, charged: Ints) -> History:
    replicas, resources = np.empty(trail.cost.size), np.empty(trail.cost.size)
    for (start, space), end in zip(stages, ends, strict=True):
        replicas[start:end] = counts_at(space, trail.deployment[start:end]).sum(axis=1)
        resources[start:end] = counts_at(space, charged[start:end]) @ space.price
    return History(
        cost=trail.cost, response_time_s=trail.response_time_s, replicas=replicas, resources=resources
    )


def _run_application(spec: Spec, rates: Floats, training: Floats, with_history: bool) -> SimulationResult:
    name = spec.application or ""
    application = application_named(name, spec.max_replicas)
    if constant_delays_s(name):
        raise InputError(
            f"application '{name}': runs under an application policy only, for its constant delays; "
            "--application-policy grant-all leaves operators to themselves"
        )
    return run_graph(spec, application, rates, training=training, with_history=with_history)


OperatorOf = Callable[[Spec, Floats, Floats, Generator], Operator]  # as `operator_of`


class LocalManager(NamedTuple):
    """One operator of an application, the policy that manages it, and its chance."""

    op: Operator
    policy: Policy
    rng: Generator


def local_managers(
    spec: Spec,
    application: Application,
    rates: Floats,
    training: Floats,
    *,
    bounds_s: Mapping[str, float] | None = None,
    manager_weights: Weights | None = None,
    operator_of: OperatorOf = operator_of,
) -> dict[str, LocalManager]:
    """An Operator Manager for every operator, each with its own bound and what it knows of its operator."""
    shares = equal_shares(application, spec.objective) if bounds_s is None else bounds_s
    seeds = np.random.default_rng(spec.seed).spawn(2 * len(application.operators))
    managers: dict[str, LocalManager] = {}
    for index, operator in enumerate(application.operators):
        if operator.name not in shares:
            raise InputError(f"operator '{operator.name}': no response-time bound among {', '.join(shares)}")
        local = replace(
            spec,
            slo_s=shares[operator.name],
            weights=spec.weights if manager_weights is None else manager_weights,
            service_rate=1.0 / operator.service_time_s,
            service_scv=operator.service_scv,
            max_replicas=operator.max_replicas,
        )
        op = operator_of(local, rates, training, seeds[2 * index])
        managers[operator.name] = LocalManager(op, build_policy(op), seeds[2 * index + 1])
    return managers


def run_graph(
    spec: Spec,
    application: Application,
    rates: Floats,
    *,
    bounds_s: Mapping[str, float] | None = None,
    manager_weights: Weights | None = None,
    training: Floats | None = None,
    with_history: bool = False,
    operator_of: OperatorOf = operator_of,
) -> SimulationResult:
    """Simulate every operator of a graph, whatever application the specification names.

    `bounds_s` is what each Operator Manager takes for its own response-time objective (an
    equal share if left out) and `manager_weights` what weighs in its decisions (the
    specification's if left out). The outcome is accounted with the specification's
    objective and weights either way. `operator_of` makes operators of another infrastructure
    than the specification names, or with other knowledge of them.
    """
    rates = read_only(rates)
    training = rates[-TRAINING_SLOTS:] if training is None else training
    objective = spec.objective
    locals_ = local_managers(
        spec,
        application,
        rates,
        training,
        bounds_s=bounds_s,
        manager_weights=manager_weights,
        operator_of=operator_of,
    )
    check_objective(
        application,
        objective,
        fastest=max(float(local.op.deployments.speedup.max()) for local in locals_.values()),
    )
    managed: dict[str, ManagedOperator] = {}
    spaces: dict[str, Deployments] = {}
    for name, (op, policy, rng) in locals_.items():
        spaces[name] = op.deployments
        managed[name] = ManagedOperator(
            world=world_of(op, op.deployments),
            memory=policy.initial(),
            first_deployment=first_deployment(op, policy),
            rng=rng,
        )
    at_source_rate = spec.variant.latency_at_source_rate
    # Compile before timing.
    run_application(application, objective, managed, rates[:0], latency_at_source_rate=at_source_rate)
    began = time.perf_counter()
    ran = run_application(application, objective, managed, rates, latency_at_source_rate=at_source_rate)
    seconds = time.perf_counter() - began
    by_type = np.sum([counts_at(spaces[name], chosen) for name, chosen in ran.decided.items()], axis=0)
    in_force = np.sum([counts_at(spaces[name], handles) for name, handles in ran.deployments.items()], axis=0)
    return SimulationResult(
        spec=spec,
        slots=rates.size,
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


def run_specs(
    jobs: Sequence[tuple[Spec, Floats, Floats | None]],
    *,
    threads: int,
    with_history: bool = False,
    done: Callable[[SimulationResult], None] = lambda outcome: None,
    run_one: Callable[..., SimulationResult] = run_spec,
) -> list[SimulationResult]:
    """Simulate many; outcomes come back in the order asked, `done` hears of each as it ends."""

    def one(job: tuple[Spec, Floats, Floats | None]) -> SimulationResult:
        spec, rates, training = job
        outcome = run_one(spec, rates, training=training, with_history=with_history)
        done(outcome)
        return outcome

    with ThreadPoolExecutor(max_workers=max(threads, 1)) as pool:
        try:
            return list(pool.map(one, jobs))
        except BaseException:  # an error or Ctrl-C ends what runs, not what waits
            pool.shutdown(cancel_futures=True)
            raise
