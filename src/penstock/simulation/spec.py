"""What can be simulated: one operator, a graph of operators, or an application under its managers.

Each is complete: the same specification gives the same numbers. What does not apply to one of
them is not a field of it.
"""

from dataclasses import dataclass, field, replace
from math import inf
from typing import TypeAlias

from penstock.apps.registry import application_entry
from penstock.control.forecasting import Forecast
from penstock.control.spec import Manager, check_tunable, who_decides
from penstock.domain.application import Path
from penstock.domain.deployment import check_max_replicas
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective, Weights
from penstock.domain.trace import SMALLEST_RATE
from penstock.policy.registry import Level
from penstock.simulation.hosts import Hosts
from penstock.simulation.presets import (
    PAPER,
    PUBLISHED,
    FirstReplica,
    Variant,
    family_and_count,
    published_first_replica,
)

LARGEST_FACTOR = 1e9
MOST_LEVELS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """Prices or speeds that change at a slot."""

    slot: int
    factor: float

    def __post_init__(self) -> None:
        if self.slot < 0:
            raise InputError(f"change at slot {self.slot}: slots count from 0")
        if not 0 < self.factor <= LARGEST_FACTOR:
            raise InputError(f"factor {self.factor:g}: it must be positive, at most {LARGEST_FACTOR:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every simulation has: Operator Managers, an infrastructure, an objective and chance."""

    operator_policy: Manager
    infrastructure: str = "A:3"
    max_replicas: int = 10
    slo_s: float = 0.050
    weights: Weights = field(default_factory=Weights)
    levels: int = 30  # of the arrival rate that learners tell apart
    max_rate: float = 650.0  # tuples/s at the top of the highest level
    seed: int = 1
    as_published: bool = False
    published_updates: bool | None = None  # of learners; None: as published, or not, like the rest
    first_replica: FirstReplica | None = None
    forecast: Forecast | None = None  # None: whatever the policy wants

    def __post_init__(self) -> None:
        self.operator_policy.entry(Level.OPERATOR)  # raises for an unknown name or parameter
        check_max_replicas(self.max_replicas)
        if not 0 < self.slo_s < inf:
            raise InputError(
                f"response-time objective {self.slo_s * 1000:g} ms; it must be positive and finite"
            )
        if not SMALLEST_RATE <= self.max_rate < inf:
            raise InputError(
                f"max_rate={self.max_rate:g}; it must be finite, {SMALLEST_RATE:g} tuples/s or more"
            )
        if not 1 <= self.levels <= MOST_LEVELS:
            raise InputError(f"levels={self.levels}; give 1 to {MOST_LEVELS}")
        if self.seed < 0:
            raise InputError(f"seed {self.seed}; it cannot be negative")
        family_and_count(self.infrastructure)

    @property
    def objective(self) -> Objective:
        return Objective(response_time_s=self.slo_s, weights=self.weights)

    @property
    def variant(self) -> Variant:
        """The paper's or the published behaviour, with this specification's exceptions."""
        variant = PUBLISHED if self.as_published else PAPER
        if self.as_published:
            family, count = family_and_count(self.infrastructure)
            first = published_first_replica(family, count, self.operator_policy.name)
            variant = replace(variant, first_replica=first)
        if self.first_replica is not None:
            variant = replace(variant, first_replica=self.first_replica)
        return variant

    @property
    def updates_as_published(self) -> bool:
        return self.as_published if self.published_updates is None else self.published_updates

    @property
    def operators_decide(self) -> bool:
        """Whether operators have managers of their own."""
        return True

    @property
    def depends_on_seed(self) -> bool:
        return _has_chance(self.operator_policy)

    @property
    def label(self) -> str:
        """A short name for who manages."""
        return self.operator_policy.name


def _has_chance(operator_policy: Manager) -> bool:
    return operator_policy.entry(Level.OPERATOR).traits.chance


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOperator(Setting):
    """A single operator, whose speeds and prices may change during the run."""

    service_rate: float = 180.0  # tuples/s of one replica on a node of speedup 1
    service_scv: float = 0.5
    price_shift: Shift | None = None  # of every node type but the last
    speed_shift: Shift | None = None  # of every node type but the last

    def __post_init__(self) -> None:
        Setting.__post_init__(self)
        if not (0 < self.service_rate < inf and 1 / self.service_rate < inf):
            raise InputError(f"service rate {self.service_rate:g} tuples/s; it must be positive and finite")
        if not 0 <= self.service_scv < inf:
            raise InputError(f"service-time SCV {self.service_scv:g}; it must be finite and not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Application(Setting):
    """A whole application; `slo_s` holds from source to sink."""

    application: str
    path_slo_s: tuple[tuple[Path, float], ...] = ()  # limits of single paths

    def __post_init__(self) -> None:
        Setting.__post_init__(self)
        application_entry(self.application)

    @property
    def objective(self) -> Objective:
        return Objective(response_time_s=self.slo_s, weights=self.weights, per_path_s=dict(self.path_slo_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorGraph(_Application):
    """Operators that each have a manager, with none above them; changes take no time."""

    def __post_init__(self) -> None:
        _Application.__post_init__(self)
        if application_entry(self.application).delays_s:
            raise InputError(
                f"application '{self.application}': runs only under an application policy, because of its "
                "constant delays; --application-policy grant-all leaves operators to themselves"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedApplication(_Application):
    """An application under its Application Manager; a change pauses it, and replicas may have nodes."""

    application_policy: Manager
    pause_s: float = 10.0  # that a reconfiguration takes
    hosts: Hosts | None = None  # nodes to place replicas on
    node_policy: Manager | None = None  # of those nodes

    def __post_init__(self) -> None:
        _Application.__post_init__(self)
        check_tunable(self.operator_policy, self.application_policy)
        if not 0 <= self.pause_s < inf:
            raise InputError(f"pause of {self.pause_s:g} s; it must be finite and not negative")
        if self.node_policy is not None:
            if self.hosts is None:
                raise InputError("node policy: there are no nodes to move replicas between; give hosts")
            self.node_policy.entry(Level.NODE)

    @property
    def operators_decide(self) -> bool:
        return not self.application_policy.entry(Level.APPLICATION).traits.decides_itself

    @property
    def depends_on_seed(self) -> bool:
        if self.hosts is not None:  # their positions are random
            return True
        chance = self.application_policy.entry(Level.APPLICATION).traits.chance
        return self.operators_decide and (chance or _has_chance(self.operator_policy))

    @property
    def label(self) -> str:
        return who_decides(self.operator_policy.name, self.application_policy.name)


Simulation: TypeAlias = OneOperator | OperatorGraph | ManagedApplication
