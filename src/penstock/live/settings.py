"""What a live run is asked to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path

from penstock.control.safety_settings import SafetySettings
from penstock.control.spec import GRANT_ALL, Manager, check_tunable, needs_model, who_decides
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.policy.registry import Level
from penstock.runtimes.spark.cluster import NodeKind


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSettings:
    """How an application is run and controlled."""

    out: Path
    policy: Manager = field(default_factory=lambda: Manager(name="threshold-c"))
    application_policy: Manager = field(default_factory=lambda: Manager(name=GRANT_ALL))
    kinds: tuple[NodeKind, ...] = (NodeKind(name="standard"),)
    minutes: float | None = None  # None: until the input is done, or until interrupted
    until_done: bool = False
    advise: bool = False
    seed: int = 1
    interval_s: float = 5.0  # between two decisions
    trigger_s: float = 0.5  # a micro-batch begins that often at most
    measure_s: float = 30.0  # before the first decision of a policy that needs a model
    warm_up_s: float = 30.0  # the first micro-batches of a query, or of an executor, are slow
    scale_in_window_s: float = 30.0
    replicas: int = 1  # every chain starts with
    replicas_of: Mapping[str, int] = field(default_factory=dict)  # other numbers for some chains
    label: str = ""  # what the run is called in tables; the policy's name if left out
    retune_s: float = 300.0  # a manager that tunes: from one tuning to looking whether another is needed
    tuning_limit_s: float = 600.0  # a tuning that takes longer is given up
    master: str | None = None  # of a cluster that runs already; None: an embedded one
    max_cost: float | None = None  # price of all replicas together, per hour
    max_nodes: int | None = None  # replicas of all operators together
    force_scaling: bool = False  # a change at every interval, to show that results stay the same

    def __post_init__(self) -> None:
        check_tunable(self.operator_policy, self.application_policy)
        if self.minutes is not None and not (isfinite(self.minutes) and self.minutes > 0):
            raise InputError(f"minutes {self.minutes}; it must be positive")
        for what, value in (
            ("interval", self.interval_s),
            ("trigger", self.trigger_s),
            ("warm-up", self.warm_up_s + 1),
            ("time between two tunings", self.retune_s),
            ("limit of a tuning", self.tuning_limit_s),
        ):
            if not (isfinite(value) and value > 0):
                raise InputError(f"{what} {value} s; it must be positive")
        SafetySettings(max_cost=self.max_cost, max_nodes=self.max_nodes)  # raises where they are not valid
        if self.force_scaling and self.advise:
            raise InputError("forced changes and advice only: choose one")
        for count in (self.replicas, *self.replicas_of.values()):
            if count < 1:
                raise InputError(f"replicas={count}; at least one replica must run")
        if not self.kinds:
            raise InputError("no node types; at least one is needed")

    @property
    def work(self) -> Path:
        """What is needed to resume after a crash; absolute, because workers run elsewhere."""
        return (self.out / "work").absolute()

    @property
    def node_types(self) -> tuple[NodeType, ...]:
        """As policies see them."""
        return tuple(NodeType(name=kind.name, speedup=kind.speedup, price=kind.price) for kind in self.kinds)

    @property
    def operator_policy(self) -> Manager:
        """Completed with what the run decides: a policy with a fixed number of replicas gets the run's."""
        if "replicas" not in self.policy.entry(Level.OPERATOR).parameters:
            return self.policy
        return replace(self.policy, parameters={"replicas": self.replicas, **self.policy.parameters})

    @property
    def needs_model(self) -> bool:
        """Whether operators must be measured before the first decision."""
        return needs_model(self.policy, self.application_policy)

    @property
    def tunes(self) -> bool:
        return self.application_policy.entry(Level.APPLICATION).traits.tunes

    @property
    def name(self) -> str:
        """What the run is called in tables."""
        if self.label:
            return self.label
        if self.application_policy.name == GRANT_ALL:
            return self.policy.name
        return who_decides(self.policy.name, self.application_policy.name)


def node_kinds(text: str) -> tuple[NodeKind, ...]:
    """Node types as the command line names them: `NAME:SPEEDUP:PRICE[:SLOTS]`, separated by commas."""
    kinds: list[NodeKind] = []
    for word in (word.strip() for word in text.split(",") if word.strip()):
        name, *numbers = word.split(":")
        try:
            speedup, price, *slots = (float(number) for number in numbers)
            if not name or len(slots) > 1 or any(slot != int(slot) for slot in slots):
                raise ValueError
        except (ValueError, OverflowError) as problem:
            raise InputError(
                f"node type '{word}': give NAME:SPEEDUP:PRICE or NAME:SPEEDUP:PRICE:SLOTS"
            ) from problem
        if not (isfinite(speedup) and isfinite(price)):
            raise InputError(f"node type '{word}': speedup and price must be finite")
        limit = {"slots": int(slots[0])} if slots else {}
        kinds.append(NodeKind(name=name, speedup=speedup, price=price, **limit))
    if len({kind.name for kind in kinds}) < len(kinds):
        raise InputError(f"node types '{text}': a name is given twice")
    return tuple(kinds)
