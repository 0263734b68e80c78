"""One simulated experiment, complete: the same specification gives the same numbers."""

from dataclasses import dataclass, field, replace
from math import inf

from penstock.domain.application import Path
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective, Weights
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
    """Something that becomes different at a slot."""

    slot: int
    factor: float

    def __post_init__(self) -> None:
        if self.slot < 0:
            raise InputError(f"change at slot {self.slot}: slots count from 0")
        if not 0 < self.factor <= LARGEST_FACTOR:
            raise InputError(f"factor {self.factor:g}: it must be positive, at most {LARGEST_FACTOR:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """Policy, operator, infrastructure, objective and chance."""

    policy: str
    infrastructure: str = "A:3"
    max_replicas: int = 10
    slo_s: float = 0.050
    weights: Weights = field(default_factory=Weights)
    service_rate: float = 180.0
    service_scv: float = 0.5
    levels: int = 30
    max_rate: float = 650.0
    gamma: float = 0.99
    seed: int = 1
    as_published: bool = False
    # Overrides of what the variant says; None keeps it.
    published_updates: bool | None = None
    first_replica: FirstReplica | None = None
    threshold: float | None = None
    beta: float = 0.75
    replicas: int | None = None  # of policy `fixed`
    application: str | None = None  # a graph of operators instead of a single one
    application_policy: str | None = (
        None  # who manages the application; None: nobody, operators by themselves
    )
    path_slo_s: tuple[tuple[Path, float], ...] = ()  # limits of single paths; goes before slo_s
    pause_s: float = 10.0  # of a reconfiguration, where an application is managed
    hosts: Hosts | None = None  # nodes to place replicas on, where an application is managed
    migrate_above: float | None = None  # utilisation of a node from which its manager sends replicas away
    price_change: Shift | None = None  # of every node type but the last
    speed_change: Shift | None = None  # of every node type but the last

    def __post_init__(self) -> None:
        self._check_replicas()
        self._check_learning()
        if not 0 < self.slo_s < inf:
            raise InputError(
                f"response-time objective {self.slo_s * 1000:g} ms; it must be positive and finite"
            )
        if not (0 < self.service_rate < inf and 1 / self.service_rate < inf):
            raise InputError(f"service rate {self.service_rate:g} tuples/s; it must be positive and finite")
        if not 0 <= self.service_scv < inf:
            raise InputError(f"service-time SCV {self.service_scv:g}; it must be finite and not negative")
        if self.seed < 0:
            raise InputError(f"seed {self.seed}; it cannot be negative")
        if self.application is None and (self.application_policy or self.path_slo_s):
            what = (
                f"application policy '{self.application_policy}'"
                if self.application_policy
                else "path limits"
            )
            raise InputError(f"{what}: there is no application; give --application")
        if not 0 <= self.pause_s < inf:
            raise InputError(f"pause of {self.pause_s:g} s; it cannot be negative or endless")
        self._check_hosts()
        if self.application is not None and (self.price_change or self.speed_change):
            raise InputError(
                f"application '{self.application}': prices and speeds change for single operators only"
            )

    def _check_replicas(self) -> None:
        if self.max_replicas < 1:
            raise InputError(f"max_replicas={self.max_replicas}; at least one replica must run")
        if self.replicas is not None and self.replicas < 1:
            raise InputError(f"replicas={self.replicas}; at least one replica must run")
        if self.replicas is not None and self.replicas > self.max_replicas:
            raise InputError(f"replicas={self.replicas}; more than max_replicas={self.max_replicas}")
        if self.threshold is not None and not 0 < self.threshold < 1:
            raise InputError(f"threshold={self.threshold:g}; a utilisation between 0 and 1")
        if not 0 < self.beta < 1:
            raise InputError(f"beta={self.beta:g}; a fraction between 0 and 1")

    def _check_hosts(self) -> None:
        if self.hosts is not None and self.application_policy is None:
            raise InputError("hosts: replicas are placed under an application policy; give one")
        if self.migrate_above is not None:
            if self.hosts is None:
                raise InputError("migrations: there are no nodes to move between; give hosts")
            if not 0 < self.migrate_above < 1:
                raise InputError(f"migrate above {self.migrate_above:g}; a utilisation between 0 and 1")

    def _check_learning(self) -> None:
        if not 0 < self.max_rate < inf:
            raise InputError(f"max_rate={self.max_rate:g}; it must be positive and finite")
        if not 1 <= self.levels <= MOST_LEVELS:
            raise InputError(f"levels={self.levels}; from 1 to {MOST_LEVELS}")
        if not 0 <= self.gamma < 1:
            raise InputError(f"gamma={self.gamma:g}; a discount from 0 up to but not 1")

    @property
    def objective(self) -> Objective:
        return Objective(response_time_s=self.slo_s, weights=self.weights, per_path_s=dict(self.path_slo_s))

    @property
    def variant(self) -> Variant:
        """The paper's or the published behaviour, with this specification's exceptions."""
        variant = PUBLISHED if self.as_published else PAPER
        if self.as_published:
            family, count = family_and_count(self.infrastructure)
            first = published_first_replica(family, count, self.policy)
            variant = replace(variant, first_replica=first)
        if self.first_replica is not None:
            variant = replace(variant, first_replica=self.first_replica)
        if self.threshold is not None:
            variant = replace(variant, threshold=self.threshold)
        return variant

    @property
    def updates_as_published(self) -> bool:
        return self.as_published if self.published_updates is None else self.published_updates
