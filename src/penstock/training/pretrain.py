"""Training before the first live decision: from minutes of measurements, in seconds of simulation.

What was measured makes the simulator's model of every operator (of its micro-batches where there
were any, else M/G/1 by mean and variance of its service times); the very policies that will decide
live learn on it; the controller starts with what they learned. A model that is somewhat wrong is
far better than none: live, they go on learning.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from penstock.control.build import likely_rates, likely_source_rates, measured_operator
from penstock.control.loop import Controller, ControllerMemory
from penstock.control.spec import ControllerSpec, OperatorSpec, operator_specs
from penstock.domain.application import Application
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation
from penstock.perf.calibration import ServiceSample, SystemModel, system_model
from penstock.perf.joint import joint_queues
from penstock.perf.micro_batch import Batch
from penstock.policy.application.centralised import CentralisedLearner
from penstock.policy.kernel import CompiledPolicy, copied
from penstock.policy.memory import learned, with_learned
from penstock.policy.operator.model_based import ModelLearner
from penstock.runtimes.sim.episode import no_totals, run, single_replica, starting_type, trail_of, world_of
from penstock.runtimes.sim.joint import JointWorld, joint_trail, run_joint

K = TypeVar("K", bound=tuple[Any, ...])

TRAINING_SLOTS = 3_000_000  # a second or two; fewer leave the tables of learners half empty
_JOINT_SLOTS = 20_000
_JUMPS = 0.01  # so that a learner has been in every state
_LAST_DECISION = "last"  # of every learner: what its next update refers to


def model_of(
    application: Application,
    observations: Sequence[ApplicationObservation],
    node_types: tuple[NodeType, ...],
    *,
    interval_s: float,
    trigger_s: float = 0.0,
) -> SystemModel:
    """The graph with service times, micro-batches and selectivities as observed, and the source's rates.

    `trigger_s` is known, not observed: a micro-batch begins that long after the one before, at the earliest.
    """
    samples: list[ServiceSample] = []
    for seen in observations:
        for one in seen.operators:
            if one.service_time_s is None or one.arrival_rate is None:
                continue
            tuples = round(one.arrival_rate * interval_s)
            if tuples < 1 or not one.service_time_s > 0:
                continue
            pairs = zip(one.replicas.counts, node_types, strict=True)
            speed = sum(count * kind.speedup for count, kind in pairs)
            batch = None
            if one.batch_s is not None and one.batch_tuples:
                batch = Batch(tuples=one.batch_tuples, speed=speed, seconds=one.batch_s)
            samples.append(
                ServiceSample(
                    operator=one.operator,
                    tuples=tuples,
                    mean_s=one.service_time_s,
                    variance_s2=one.service_variance_s2,
                    speedup=speed / one.replicas.total,
                    selectivity=one.selectivity,
                    batch=batch,
                )
            )
    rates = [seen.source_rate for seen in observations]
    return system_model(application, samples, rates, trigger_s=trigger_s)


def specs_of(
    model: SystemModel, objective: Objective, together: Sequence[Sequence[str]] = ()
) -> tuple[OperatorSpec, ...]:
    """What the managers of a measured application are given."""
    return operator_specs(model.application, objective, source_rates=model.rates, together=together)


def pretrained(
    spec: ControllerSpec,
    controller: Controller,
    memory: ControllerMemory,
    *,
    slots: int = TRAINING_SLOTS,
    seed: int = 0,
) -> ControllerMemory:
    """The memory to start live with: every operator's policy after that many simulated slots.

    `controller` is what `build_controller(spec)` made. Of Application Managers the centralised learner is
    trained too, for fewer slots, because each costs more; other memories, safety's included, stay.
    """
    if not 1 <= slots <= TRAINING_SLOTS:
        raise InputError(f"training slots {slots}; give 1 to {TRAINING_SLOTS}")
    trained = dict(memory.managers.operators)
    rngs = np.random.default_rng(seed).spawn(len(spec.operators))
    for one, rng in zip(spec.operators, rngs, strict=True):
        policy = controller.managers.operators.get(one.name)  # none where the Application Manager decides
        if isinstance(policy, CompiledPolicy):
            enough = min(slots, policy.training_slots or slots)
            trained[one.name] = _trained(spec, one, policy, trained[one.name], enough, rng)
    above = controller.managers.application
    decides: Any = memory.managers.application
    if isinstance(above, CentralisedLearner):
        rng = np.random.default_rng(seed)
        decides = _trained_above(spec, above, decides, min(slots, _JOINT_SLOTS), rng)
    return memory._replace(managers=memory.managers._replace(operators=trained, application=decides))


def _trained_above(
    spec: ControllerSpec,
    policy: CentralisedLearner,
    memory: ModelLearner,
    slots: int,
    rng: np.random.Generator,
) -> ModelLearner:
    own = copied(memory)
    problem = policy.problem
    world = JointWorld(
        problem.deployments, joint_queues(policy.application, policy.objective), problem.max_response_time_s
    )
    rates = likely_source_rates(spec, problem.quantum * problem.levels, slots, rng)
    run_joint(world, own, rates, 0, rng, joint_trail(slots))
    return _without_last(memory, own)


def _trained(
    spec: ControllerSpec,
    one: OperatorSpec,
    policy: CompiledPolicy[tuple[object, ...]],
    memory: tuple[object, ...],
    slots: int,
    rng: np.random.Generator,
) -> tuple[object, ...]:
    loads = likely_rates(one, slots, rng, jumps=_JUMPS)
    known = measured_operator(spec, one, loads)
    own = copied(memory)
    run(
        world_of(known, policy.deployments),
        own,
        loads,
        single_replica(known, starting_type(known, policy)),
        rng,
        no_totals(len(spec.node_types)),
        trail_of(0),
    )
    return _without_last(memory, own)


def _without_last(fresh: K, own: K) -> K:
    """What was learned, without the last simulated decision: live intervals do not follow from it."""
    before = learned(fresh)
    kept = {
        name: before[name] if name.split(".")[-1] == _LAST_DECISION else array
        for name, array in learned(own).items()
    }
    return with_learned(fresh, kept)
