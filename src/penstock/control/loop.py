"""One tick: see, decide, write down, act. Deciding is pure; only `tick` touches the world."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.random import Generator

from penstock.control.ports import Actuator, Journal, Monitor, Plan
from penstock.domain.decision import Decision, Hold
from penstock.domain.observation import OperatorObservation
from penstock.policies.api import OperatorPolicy

Policies = Mapping[str, OperatorPolicy[Any]]
Memories = Mapping[str, Any]


def decide_all(
    policies: Policies, memories: Memories, seen: Sequence[OperatorObservation], rngs: Mapping[str, Generator]
) -> tuple[Plan, Memories]:
    """Every Operator Manager's decision from its own operator's observation."""
    plan: dict[str, Decision] = {}
    after: dict[str, Any] = dict(memories)
    for one in seen:
        policy = policies.get(one.operator)
        if policy is None:
            plan[one.operator] = Hold("nobody manages this operator")
            continue
        plan[one.operator], after[one.operator] = policy.decide(
            memories[one.operator], one, rngs[one.operator]
        )
    return plan, after


def tick(
    monitor: Monitor,
    policies: Policies,
    memories: Memories,
    rngs: Mapping[str, Generator],
    journal: Journal,
    actuator: Actuator,
) -> Memories:
    """Returns what the policies remember for the next tick."""
    seen = monitor.observe()
    plan, memories = decide_all(policies, memories, seen, rngs)
    journal.append(seen, plan)  # before acting: a crash must not lose the why
    actuator.apply(plan)
    return memories
