"""What a controller is, as a value: commands make it, a journal begins with it, one builder reads it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from penstock.compiled import Floats
from penstock.control.safety_settings import SafetySettings
from penstock.domain.application import Application, Batching
from penstock.domain.deployment import check_max_replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective, Weights
from penstock.domain.trace import SMALLEST_RATE
from penstock.perf.latency import naive_shares
from penstock.perf.traffic import visits
from penstock.policy.api import ApplicationPolicy, NodePolicy, OperatorPolicy
from penstock.policy.knowledge import ApplicationKnowledge, NodeKnowledge, OperatorKnowledge
from penstock.policy.parameters import Value
from penstock.policy.registry import Level, PolicyEntry, entries, entry, known_as, load

GRANT_ALL = "grant-all"


@dataclass(frozen=True, slots=True)
class Manager:
    """A policy by name, with the parameters that differ from its defaults."""

    name: str
    parameters: Mapping[str, Value] = field(default_factory=dict)

    def __str__(self) -> str:
        set_to = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.name} ({set_to})" if set_to else self.name

    def entry(self, level: Level) -> PolicyEntry:
        """The policy's entry; its parameters are checked."""
        found = entry(level, self.name)
        found.checked(self.parameters)
        return found

    def for_operator(self, known: OperatorKnowledge) -> OperatorPolicy[Any]:
        """The policy itself, for what is known of an operator."""
        policy: OperatorPolicy[Any] = entry(Level.OPERATOR, self.name).build(known, self.parameters)
        return policy

    def for_application(self, known: ApplicationKnowledge) -> ApplicationPolicy[Any]:
        policy: ApplicationPolicy[Any] = entry(Level.APPLICATION, self.name).build(known, self.parameters)
        return policy

    def for_node(self, known: NodeKnowledge) -> NodePolicy:
        policy: NodePolicy = entry(Level.NODE, self.name).build(known, self.parameters)
        return policy


Policy = str | type | Manager  # as a program names one: a name, `module:Class`, or the class itself


def manager_of(level: Level, policy: Policy, parameters: Mapping[str, Value] | None = None) -> Manager:
    """Any way to name a policy, checked; parameters come on top of those of a Manager."""
    given = policy if isinstance(policy, Manager) else Manager(known_as(level, policy).name)
    manager = Manager(given.name, {**given.parameters, **(parameters or {})})
    load(level, manager.name).checked(manager.parameters)
    return manager


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSpec:
    """What the manager of an operator knows about it."""

    name: str
    bound_s: float  # response time it is to stay within
    service_time_s: float  # mean, on a node of speedup 1
    service_scv: float = 1.0
    max_replicas: int = 10
    max_rate: float | None = None  # tuples/s; None: what all replicas on reference nodes can take
    rates: tuple[float, ...] = ()  # tuples/s as measured, interval by interval
    batching: Batching | None = None  # None: tuple by tuple

    def __post_init__(self) -> None:
        check_max_replicas(self.max_replicas, of=f"operator '{self.name}'")
        if self.max_rate is not None and not SMALLEST_RATE <= self.max_rate < inf:
            raise InputError(
                f"operator '{self.name}': max_rate={self.max_rate}; it must be finite, {SMALLEST_RATE:g} "
                "tuples/s or more"
            )

    @property
    def highest_rate(self) -> float:
        return self.max_replicas / self.service_time_s if self.max_rate is None else self.max_rate


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSpec:
    """Who decides for an application, about what, how carefully, and with which chance."""

    application: Application  # as known: service times on a node of speedup 1
    objective: Objective
    node_types: tuple[NodeType, ...]  # with prices per hour
    operators: tuple[OperatorSpec, ...]  # those that have a manager, or could have one
    operator_policy: Manager
    application_policy: Manager = field(default_factory=lambda: Manager(name=GRANT_ALL))
    node_policy: Manager | None = None
    weights: Weights = field(default_factory=Weights)  # of the operators' own costs
    levels: int = 30  # of an arrival rate that learners tell apart
    source_rates: tuple[float, ...] = ()  # tuples/s as measured, interval by interval
    delays_s: Mapping[str, float] = field(default_factory=dict)  # that neither load nor nodes change
    interval_s: float = 30.0  # between two rounds
    application_period_s: float = 0.0  # between two decisions of the Application Manager; 0: every round
    operator_period_s: float = 0.0
    rest_s: float = 0.0  # after a change, before anybody asks for another
    safety: SafetySettings | None = field(default_factory=SafetySettings)  # None: the chain is off
    seed: int = 1
    advise: bool = False  # decide and explain, change nothing
    # Operators that work on the same batches: their response time is measured and bounded as one.
    together: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        # Policies are looked up where a controller is built: a journal can be read without them.
        if not self.operators:
            raise InputError("controller: no operators to manage")
        if not self.node_types:
            raise InputError("controller: no node types; at least one is needed")
        if self.seed < 0:
            raise InputError(f"controller: seed {self.seed}; it cannot be negative")
        if self.safety is not None and self.safety.interval_s != self.interval_s:
            raise InputError(
                f"controller: rounds every {self.interval_s:g} s, and safety settings for "
                f"{self.safety.interval_s:g} s"
            )
        known = {operator.name for operator in self.application.operators}
        for one in self.operators:
            if one.name not in known:
                raise InputError(
                    f"controller: application '{self.application.name}' has no operator '{one.name}'"
                )

    @property
    def operators_decide(self) -> bool:
        """Whether operators have managers of their own."""
        return not self.application_policy.entry(Level.APPLICATION).traits.decides_itself

    @property
    def ignores_objective(self) -> str | None:
        """The policy that decides without looking at the objective, in one line; None where none does."""
        if not self.operators_decide or self.tunes:
            return None
        traits = self.operator_policy.entry(Level.OPERATOR).traits
        unbound = self.operator_policy.parameters.get(traits.unbound_by or "") is not None
        if traits.has_bounds and not unbound:
            return None
        return f"policy '{self.operator_policy.name}' decides without looking at the response-time objective"

    @property
    def needs_model(self) -> bool:
        """Whether operators must have been measured before anybody can decide."""
        above = self.application_policy.entry(Level.APPLICATION).traits
        if above.needs_model or above.decides_itself:
            return True
        return self.operator_policy.entry(Level.OPERATOR).traits.needs_model

    @property
    def tunes(self) -> bool:
        """Whether the Application Manager sets bounds and weights while the application runs."""
        return self.application_policy.entry(Level.APPLICATION).traits.tunes

    @property
    def label(self) -> str:
        """What a run is called in tables."""
        if self.application_policy.name == GRANT_ALL:
            return self.operator_policy.name
        return who_decides(self.operator_policy.name, self.application_policy.name)


def who_decides(operator_policy: str, application_policy: str) -> str:
    """A short name for both levels, or for the one that decides."""
    if entry(Level.APPLICATION, application_policy).traits.decides_itself:
        return f"{application_policy} (application)"
    return f"{operator_policy} + {application_policy}"


def anticipates(operator_policy: Manager, application_policy: Manager) -> bool:
    """Whether whoever decides goes by the load that arrives, which a change does not disturb."""
    above = application_policy.entry(Level.APPLICATION).traits
    return (above if above.decides_itself else operator_policy.entry(Level.OPERATOR).traits).anticipates


def check_tunable(operator_policy: Manager, application_policy: Manager) -> None:
    """A manager that tunes needs something to set: bounds or weights that operators decide by."""
    if not application_policy.entry(Level.APPLICATION).traits.tunes:
        return
    traits = operator_policy.entry(Level.OPERATOR).traits
    unbound = operator_policy.parameters.get(traits.unbound_by or "") is not None
    if unbound or not traits.has_bounds:
        bound = [name for name, one in entries(Level.OPERATOR).items() if one.traits.has_bounds]
        raise InputError(
            f"policy '{operator_policy.name}': it has no bounds or weights for the application policy "
            f"'{application_policy.name}' to set; choose one that has: {', '.join(bound)}"
        )


def operator_specs(
    application: Application,
    objective: Objective,
    *,
    source_rates: Floats | None = None,
    together: Sequence[Sequence[str]] = (),
) -> tuple[OperatorSpec, ...]:
    """What is known about every operator of a graph: its share of the response time and of the load.

    Operators that work `together` have the sum of their shares, each of them.
    """
    shares, reached = naive_shares(application, objective), visits(application)
    shares = {
        **shares,
        **{name: sum(shares[one] for one in group) for group in together for name in group},
    }
    rates = np.zeros(0) if source_rates is None else source_rates
    return tuple(
        OperatorSpec(
            name=operator.name,
            bound_s=shares[operator.name],
            service_time_s=operator.service_time_s,
            service_scv=operator.service_scv,
            max_replicas=operator.max_replicas,
            rates=tuple(float(rate) for rate in rates * reached[operator.name]),
            batching=operator.batching,
        )
        for operator in application.operators
    )
