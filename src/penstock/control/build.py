"""A controller from its specification: the same for a run, for its replay and for training in advance."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats
from penstock.control.hierarchy import Managers
from penstock.control.loop import Controller, ControllerMemory, first_memory
from penstock.control.spec import ControllerSpec, Manager, OperatorSpec
from penstock.domain.application import Application
from penstock.domain.infrastructure import NodeType
from penstock.perf.deployments import known_deployments
from penstock.perf.micro_batch import attainable_s
from penstock.perf.queueing import queue_as_known, replica_response_time
from penstock.perf.traffic import visits
from penstock.policy.api import OperatorPolicy
from penstock.policy.knowledge import ApplicationKnowledge, NodeKnowledge, OperatorKnowledge
from penstock.policy.registry import Level
from penstock.policy.rl.post_decision import BelievedModel

_PLANNING_SLOTS = 100_000  # enough to know how the load moves from one level to the next


class Knowledge(Protocol):
    """What managers are given when they are built. The simulator knows more than measurements do."""

    def of_operator(self, one: OperatorSpec) -> OperatorKnowledge: ...

    def of_application(self) -> ApplicationKnowledge: ...


def build_controller(
    spec: ControllerSpec, knowledge: Knowledge | None = None, *, nodes: tuple[str, ...] = ()
) -> tuple[Controller, ControllerMemory]:
    """The controller a specification describes, with nothing learned yet.

    `nodes` are the names of those that have a manager, where the specification has a node policy.
    """
    known = FromMeasurements(spec) if knowledge is None else knowledge
    check_application_policy(
        spec.application_policy,
        spec.application,
        spec.node_types,
        where="the infrastructure",
        delays_s=spec.delays_s,
    )
    operators = operator_managers(spec, known) if spec.operators_decide else {}
    controller = Controller(
        managers=Managers(
            operators=operators,
            application=spec.application_policy.for_application(known.of_application()),
            nodes={}
            if spec.node_policy is None
            else dict.fromkeys(nodes, spec.node_policy.for_node(NodeKnowledge())),
            application_period_s=spec.application_period_s,
            operator_period_s=dict.fromkeys(operators, spec.operator_period_s),
            rest_s=spec.rest_s,
        ),
        node_types=spec.node_types,
        safety=spec.safety,
        advise=spec.advise,
    )
    return controller, first_memory(controller, spec.seed)


def operator_managers(spec: ControllerSpec, known: Knowledge) -> dict[str, OperatorPolicy[Any]]:
    """A manager for every operator of the specification, each from what is known of it."""
    return {one.name: spec.operator_policy.for_operator(known.of_operator(one)) for one in spec.operators}


class FromMeasurements:
    """What is known about a running application: what was measured, and loads like those measured."""

    def __init__(self, spec: ControllerSpec) -> None:
        self._spec = spec
        *rngs, self._source_rng = np.random.default_rng(spec.seed).spawn(len(spec.operators) + 1)
        self._rngs = {one.name: rng for one, rng in zip(spec.operators, rngs, strict=True)}

    def of_operator(self, one: OperatorSpec) -> OperatorKnowledge:
        rates = likely_rates(one, _PLANNING_SLOTS, self._rngs[one.name])
        return measured_operator(self._spec, one, rates)

    def of_application(self) -> ApplicationKnowledge:
        spec = self._spec
        highest = max((source_capacity(spec.application, spec.node_types), *spec.source_rates))
        return ApplicationKnowledge(
            application=spec.application,
            objective=spec.objective,
            node_types=spec.node_types,
            training=likely_source_rates(spec, highest, _PLANNING_SLOTS, self._source_rng),
            max_rate=highest,
            interval_s=spec.interval_s,
            levels=spec.levels,
            delays_s=spec.delays_s,
        )


def measured_operator(spec: ControllerSpec, one: OperatorSpec, rates: Floats) -> OperatorKnowledge:
    """An operator as it was measured, on nodes as they are; its policy is given the measurements."""
    space = known_deployments(spec.node_types, one.max_replicas)
    queue = queue_as_known(one.service_time_s, one.service_scv, one.batching)
    bound_s = one.bound_s
    if one.batching is not None:
        # A violation counts once, however late: of a bound that nothing can keep, the fewest replicas
        # would be learned, whatever the load.
        bound_s = attainable_s(bound_s, replica_response_time(queue, 0.0, 1.0))
    dearest = max(node_type.price for node_type in spec.node_types)
    return OperatorKnowledge(
        node_types=spec.node_types,
        deployments=space,
        queue=queue,
        service_time_s=one.service_time_s,
        service_scv=one.service_scv,
        max_response_time_s=bound_s,
        weights=spec.weights,
        cost_scale=one.max_replicas * (dearest or 1.0),
        levels=spec.levels,
        max_rate=one.highest_rate,
        rates=rates,
        training=rates,
        model=lambda: BelievedModel(deployments=space, queue=queue),
    )


def source_capacity(application: Application, node_types: tuple[NodeType, ...]) -> float:
    """Tuples/s of every source that the narrowest operator can take, all replicas on the fastest nodes."""
    fastest = max(node_type.speedup for node_type in node_types)
    reached = visits(application)
    return min(
        operator.max_replicas * fastest / (operator.service_time_s * reached[operator.name])
        for operator in application.operators
        if reached[operator.name] > 0
    )


def likely_source_rates(spec: ControllerSpec, max_rate: float, slots: int, rng: Generator) -> Floats:
    """A walk like an operator's, over all that the application can take."""
    source = OperatorSpec(
        name="source", bound_s=1.0, service_time_s=1.0, max_rate=max_rate, rates=spec.source_rates
    )
    return likely_rates(source, slots, rng)


def likely_rates(one: OperatorSpec, slots: int, rng: Generator, *, jumps: float = 0.0) -> Floats:
    """Loads an operator may meet: a walk over all it can take, varying as much as what was measured.

    A few minutes show how much the load varies from one interval to the next, not where it
    goes later: a learner must have seen every level before it is asked about it. In a share
    `jumps` of the slots the load jumps to any other value, into states that a gentle walk never reaches.
    """
    rates = np.array(one.rates)
    restless = float(np.std(np.diff(rates))) if rates.size > 2 else 0.0
    top = max(one.highest_rate, float(rates.max()) if rates.size else 0.0)
    steps = rng.normal(0.0, max(restless, 0.02 * top), slots)
    steps[0] += float(rates[0]) if rates.size else top / 2
    jumping = rng.random(slots) < jumps
    steps[jumping] += rng.uniform(0.0, 2 * top, int(jumping.sum()))
    walked: Floats = np.abs((np.cumsum(steps) + top) % (2 * top) - top)  # thrown back at both ends
    return walked


def check_application_policy(
    manager: Manager,
    application: Application,
    node_types: tuple[NodeType, ...],
    *,
    where: str,
    delays_s: Mapping[str, float] | None = None,
    **limits: int,
) -> None:
    """Refuse, before anything is measured, what an Application Manager cannot do."""
    check = getattr(manager.entry(Level.APPLICATION).policy, "check_before_start", None)
    if check is not None:
        check(manager.name, application, node_types, where=where, delays_s=delays_s or {}, **limits)
