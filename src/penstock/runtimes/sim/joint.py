"""The slotted simulation of a whole application under one manager, all operators in lock-step.

A slot as in `episode`, for joint deployments: the source's rate arrives and reaches every
operator undiminished (lambda_o = its share of Lambda, Russo 2018, sec. 4); the response time is
that of the deployment in force over the longest path; the manager sees both and decides for
all operators; a slot in which any of them changes counts as one reconfiguration.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from penstock.compiled import Floats, Ints, compiled
from penstock.perf.deployments import Deployments, cost_of
from penstock.perf.joint import (
    JointQueues,
    joint_mean_utilisation,
    joint_response_time,
    joint_utilisation,
)
from penstock.policy.kernel import Seen, step


class JointWorld(NamedTuple):
    """What is true of the simulated application."""

    deployments: Deployments  # joint
    queues: JointQueues
    max_response_time_s: float


class JointTrail(NamedTuple):
    """What happened slot by slot."""

    violated: Ints
    reconfigured: Ints
    replicas: Floats  # of all operators, after the decision


def joint_trail(slots: int) -> JointTrail:
    return JointTrail(np.zeros(slots, dtype=np.int64), np.zeros(slots, dtype=np.int64), np.zeros(slots))


@compiled
def run_joint(
    world: JointWorld, memory: Any, rates: Floats, here: int, rng: Generator, trail: JointTrail
) -> int:
    """Run a manager over these source rates from joint deployment `here`; returns the last one."""
    for slot in range(rates.size):
        rate = rates[slot]
        time = joint_response_time(world.queues, world.deployments, here, rate)
        busy = joint_utilisation(world.queues, world.deployments, here, rate)
        mean = joint_mean_utilisation(world.queues, world.deployments, here, rate)
        target, _ = step(memory, Seen(here, rate, time, busy, mean), rng)
        trail.violated[slot] = time > world.max_response_time_s
        trail.reconfigured[slot] = target != here
        trail.replicas[slot] = cost_of(world.deployments, target)
        here = target
    return here
