"""What a simulation measured."""

from dataclasses import dataclass

from penstock.compiled import Floats
from penstock.simulation.presets import scenario
from penstock.simulation.spec import Simulation


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What happened slot by slot."""

    cost: Floats
    response_time_s: Floats
    replicas: Floats  # in all, in force during the slot
    resources: Floats  # as charged in `cost`: by default for the deployment decided on in the slot


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationResult:
    """A simulation in a few figures."""

    spec: Simulation
    slots: int
    avg_cost: float
    violations_pct: float
    reconfigurations_pct: float
    resource_cost: float  # mean price of the deployment, not normalised
    replicas_by_type: tuple[float, ...]  # mean, after each decision
    seconds: float  # of the simulation loop
    history: History | None = None
    downtime_pct: float | None = None  # of the time, where reconfigurations take time
    migrations: int | None = None  # where there are nodes to move between

    @property
    def mean_replicas(self) -> float:
        return sum(self.replicas_by_type)

    @property
    def mean_watts(self) -> float | None:
        """Power of the replicas, where that of every node type is known."""
        types = scenario(self.spec.infrastructure, self.spec.variant).infrastructure.node_types
        each = [one.watts for one in types]
        pairs = zip(self.replicas_by_type, each, strict=True)
        return None if None in each else sum(count * (watts or 0.0) for count, watts in pairs)

    @property
    def slots_per_s(self) -> float:
        return self.slots / self.seconds if self.seconds > 0 else float("inf")
