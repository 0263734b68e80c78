"""One tick: see, decide, write down, act. Deciding is pure; only `tick` touches the world."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

from numpy.random import Generator, default_rng

from penstock.control.hierarchy import PLACING, Managers, ManagersMemory, Round, decide
from penstock.control.hierarchy import first_memory as managers_memory
from penstock.control.journal import Ticked
from penstock.control.orders import Order
from penstock.control.plan import Plan
from penstock.control.ports import Actuator, Journal, Monitor
from penstock.control.safety import Admitted, admit
from penstock.control.safety_settings import SafetySettings
from penstock.control.watch import SafetyMemory, carried_out, obey
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import ApplicationObservation
from penstock.policy.api import DecidesInPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """Who decides, and how carefully."""

    managers: Managers
    node_types: tuple[NodeType, ...]
    safety: SafetySettings | None = field(default_factory=SafetySettings)  # None: no chain, all is admitted
    advise: bool = False  # decide and explain, change nothing


class ControllerMemory(NamedTuple):
    """Everything a controller remembers, chance included."""

    managers: ManagersMemory
    safety: SafetyMemory  # empty without a chain
    rngs: Mapping[str, Generator]  # one per managed operator and per node, and one for placing the others
    in_place: bool = False  # whether the next one is written over it


def first_memory(controller: Controller, seed: int) -> ControllerMemory:
    names = [*sorted(controller.managers.operators), *sorted(controller.managers.nodes), PLACING]
    return memory_with(controller, dict(zip(names, default_rng(seed).spawn(len(names)), strict=True)))


def memory_with(controller: Controller, rngs: Mapping[str, Generator]) -> ControllerMemory:
    """Nothing remembered yet, and chance as given."""
    return ControllerMemory(managers=managers_memory(controller.managers), safety=SafetyMemory(), rngs=rngs)


def in_place(controller: Controller, memory: ControllerMemory, *, explains: bool = False) -> ControllerMemory:
    """The same memory for a loop that never goes back, such as a simulation's: each state is used only once.

    Then nothing has to be copied for a decision: policies that can do so write into the memory,
    and the generators move on. Decisions are the same; reasons are left out unless it `explains`.
    """
    managers = controller.managers
    operators = {
        name: _in_place(managers.operators[name], part, explains)
        for name, part in memory.managers.operators.items()
    }
    application = _in_place(managers.application, memory.managers.application, explains)
    given = memory.managers._replace(operators=operators, application=application)
    return memory._replace(managers=given, in_place=True)


def _in_place(policy: object, memory: Any, explains: bool) -> Any:
    return policy.in_place(memory, explains=explains) if isinstance(policy, DecidesInPlace) else memory


def plan(
    controller: Controller,
    memory: ControllerMemory,
    seen: ApplicationObservation,
    orders: Sequence[Order] = (),
) -> tuple[Plan, ControllerMemory]:
    """Operator Managers ask, the Application Manager grants, safety vetoes.

    `memory` stays as it was, unless it was made by `in_place`.
    """
    rngs = memory.rngs if memory.in_place else deepcopy(dict(memory.rngs))
    outcome, managers = decide(
        controller.managers, memory.managers, seen, rngs, nodes=seen.nodes, hosts=seen.hosts
    )
    admitted, safety = _admitted(controller, memory.safety, outcome, seen, orders)
    made = Plan(
        decisions=outcome.decisions,
        requests=outcome.requests,
        verdict=outcome.verdict,
        vetoes=admitted.vetoes,
        granted=admitted.granted,
        advise=controller.advise,
    )
    done = made.done
    if outcome.verdict.granted and not done:  # nothing changes after all, so no manager has to rest
        managers = managers._replace(changed_at_s=memory.managers.changed_at_s)
    if controller.safety is not None:
        safety = carried_out(safety, done, seen)
    return made, ControllerMemory(managers, safety, rngs, memory.in_place)


def _admitted(
    controller: Controller,
    memory: SafetyMemory,
    outcome: Round,
    seen: ApplicationObservation,
    orders: Sequence[Order],
) -> tuple[Admitted, SafetyMemory]:
    """What the safety chain lets through; without a chain, everything."""
    granted = outcome.verdict.granted
    if controller.safety is not None:
        memory = reduce(obey, orders, memory)
        return admit(controller.safety, controller.node_types, memory, granted, outcome.decisions, seen)
    if orders:
        raise InputError(f"{orders[0]}: orders need the safety chain, and this controller runs without one")
    return Admitted(granted, vetoes=()), memory


def tick(
    controller: Controller,
    memory: ControllerMemory,
    monitor: Monitor,
    journal: Journal,
    actuator: Actuator,
    orders: Sequence[Order] = (),
    *,
    keep: Callable[[ControllerMemory], None] = lambda memory: None,
) -> tuple[Ticked, ControllerMemory]:
    """One round, and what to remember for the next; `keep` puts that where a restart finds it."""
    seen = monitor.observe()
    made, memory = plan(controller, memory, seen, orders)
    ticked = Ticked(seen=seen, orders=tuple(orders), plan=made)
    journal.append(ticked)  # before acting
    keep(memory)
    actuator.apply(made.to_do)
    return ticked, memory
