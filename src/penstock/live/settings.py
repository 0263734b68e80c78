"""What a live run is asked to do: who decides, and everything else."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path

from penstock.control.forecasting import Forecast
from penstock.control.safety_settings import NEEDED_METRICS, SafetySettings
from penstock.control.spec import (
    GRANT_ALL,
    ControllerSpec,
    Policy,
    anticipates,
    check_tunable,
    manager_of,
    operator_specs,
)
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.policy.application.tuned import naive
from penstock.policy.registry import Level
from penstock.runtimes.spark.cluster import NodeKind
from penstock.runtimes.spark.session import GUARDED, OURS
from penstock.runtimes.spark.topology import App

STANDARD = NodeKind(name="standard")
INTERVAL_S = 1.0  # between two decisions: the longer, the more waits when the load jumps
_STALE_S = 15.0  # a micro-batch may take long while replicas come


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSettings:
    """How an application is run; who decides for it is a `ControllerSpec`."""

    out: Path
    kinds: tuple[NodeKind, ...] = (STANDARD,)
    minutes: float | None = None  # None: until the input is done, or until interrupted
    until_done: bool = False
    trigger_s: float = 0.5  # a micro-batch begins that often at most
    joined: bool = False  # operators share a query where they can, each on its own executors
    measure_s: float = 30.0  # before the first decision of a policy that needs a model
    replicas: int = 1  # every chain starts with
    spares: int = 0  # warm executors of every chain that wait to become replicas
    replicas_of: Mapping[str, int] = field(default_factory=dict)  # other numbers for some chains
    label: str = ""  # what the run is called in tables; who decides if left out
    retune_s: float = 300.0  # a manager that tunes: from one tuning to looking whether another is needed
    tuning_limit_s: float = 600.0  # a tuning that takes longer is given up
    keep_gb: float = 10.0  # results of a sink without a writer: beyond that, the oldest go
    master: str | None = None  # of a cluster that runs already; None: an embedded one
    conf: Mapping[str, str] = field(default_factory=dict)  # Spark settings for its session
    force_scaling: bool = False  # a change at every interval, to show that results stay the same
    forecast: Forecast | None = None  # None: whatever the policy wants
    spark_allocates: bool = False  # Spark's own dynamic allocation decides, and Penstock only watches

    def __post_init__(self) -> None:
        if self.minutes is not None and not (isfinite(self.minutes) and self.minutes > 0):
            raise InputError(f"minutes {self.minutes}; it must be positive")
        for what, value in (
            ("trigger", self.trigger_s),
            ("time between two tunings", self.retune_s),
            ("limit of a tuning", self.tuning_limit_s),
        ):
            if not (isfinite(value) and value > 0):
                raise InputError(f"{what} {value} s; it must be positive")
        if not self.keep_gb > 0:
            raise InputError(f"results to keep: {self.keep_gb} GB; it must be positive")
        for count in (self.replicas, *self.replicas_of.values()):
            if count < 1:
                raise InputError(f"replicas={count}; at least one replica must run")
        if self.spares < 0:
            raise InputError(f"spares={self.spares}; it cannot be negative")
        if self.spares and len(self.kinds) > 1:
            raise InputError("spares and several node types: nobody knows which type the next replica has")
        if self.spark_allocates and (self.spares or self.force_scaling or len(self.kinds) > 1):
            raise InputError(
                "Spark's own allocation: it knows no spares or node types, and nobody else changes anything"
            )
        for key in self.conf:
            _check_setting(key, embedded=self.master is None)
        if not self.kinds:
            raise InputError("no node types; at least one is needed")

    @property
    def work(self) -> Path:
        """What is needed to resume after a crash; absolute, because workers run elsewhere."""
        return (self.out / "work").absolute()


def _check_setting(key: str, *, embedded: bool) -> None:
    if not key.startswith("spark."):
        raise InputError(f"setting '{key}': Spark's settings begin with 'spark.'")
    if key.startswith(OURS):
        raise InputError(f"setting '{key}': Penstock needs it as it is; leave it out")
    if embedded and key.startswith(GUARDED):
        raise InputError(f"setting '{key}': it keeps others out of the embedded cluster; leave it out")


def controller_for(
    app: App,
    *,
    policy: Policy = "adaptive",
    application_policy: Policy = GRANT_ALL,
    kinds: tuple[NodeKind, ...] = (STANDARD,),
    replicas: int = 1,
    interval_s: float = INTERVAL_S,
    warm_up_s: float = 15.0,
    scale_in_window_s: float = 20.0,
    max_cost: float | None = None,
    max_nodes: int | None = None,
    seed: int = 1,
    advise: bool = False,
    joined: bool = False,
) -> ControllerSpec:
    """Who decides for an application on Spark, as far as that is known before anything was measured.

    `interval_s` lies between two decisions, `warm_up_s` is how long the first micro-batches of a query
    or of an executor are slow, `max_cost` the price per hour and `max_nodes` the number of all replicas
    together. `joined` as in `LiveSettings`. A policy with a parameter `replicas` runs the number that the
    run starts with.
    """
    graph = app.chain_graph()
    above = manager_of(Level.APPLICATION, application_policy)
    below = manager_of(Level.OPERATOR, policy)
    if "replicas" in below.entry(Level.OPERATOR).parameters:
        below = replace(below, parameters={"replicas": replicas, **below.parameters})
    check_tunable(below, above)
    queries = app.queries(joined=joined)
    together = tuple(tuple(one.name for one in query.chains) for query in queries if len(query.chains) > 1)
    # A manager that tunes starts with naive shares, as all do, and equal weights.
    tunes = above.entry(Level.APPLICATION).traits.tunes
    anticipating = anticipates(below, above)
    return ControllerSpec(
        application=graph,
        objective=app.objective,
        node_types=tuple(node_type(kind) for kind in kinds),
        operators=operator_specs(graph, app.objective, together=together),
        operator_policy=below,
        application_policy=above,
        weights=naive(graph, app.objective).weights if tunes else app.objective.weights,
        interval_s=interval_s,
        safety=SafetySettings(
            interval_s=interval_s,
            warm_up_s=warm_up_s,
            stale_after_intervals=max(_STALE_S / interval_s, 3.0) if interval_s > 0 else 3.0,
            anticipating=anticipating,
            # Who anticipates needs the load alone, and knows itself whether that was measured.
            needed_metrics=() if anticipating else NEEDED_METRICS,
            scale_in_window_s=scale_in_window_s,
            max_replicas={one.name: one.max_replicas for one in graph.operators},
            max_cost=max_cost,
            max_nodes=max_nodes,
            spare_cpu=True,
        ),
        seed=seed,
        advise=advise,
        together=together,
    )


def node_type(kind: NodeKind) -> NodeType:
    """A kind of node as policies know it."""
    return NodeType(name=kind.name, speedup=kind.speedup, price=kind.price, watts=kind.watts)


def node_kinds(text: str) -> tuple[NodeKind, ...]:
    """As the command line names them: `NAME:SPEEDUP:PRICE[:SLOTS][@WATTS]`, separated by commas."""
    kinds: list[NodeKind] = []
    for word in (word.strip() for word in text.split(",") if word.strip()):
        described, at, watts = word.partition("@")
        name, *numbers = described.split(":")
        try:
            speedup, price, *slots = (float(number) for number in numbers)
            draws = float(watts) if at else None
            if not name or len(slots) > 1 or any(slot != int(slot) for slot in slots):
                raise ValueError
        except (ValueError, OverflowError) as problem:
            raise InputError(
                f"node type '{word}': give NAME:SPEEDUP:PRICE or NAME:SPEEDUP:PRICE:SLOTS; @WATTS if known"
            ) from problem
        if not (isfinite(speedup) and isfinite(price)):
            raise InputError(f"node type '{word}': speedup and price must be finite")
        limit = {"slots": int(slots[0])} if slots else {}
        kinds.append(NodeKind(name=name, speedup=speedup, price=price, watts=draws, **limit))
        node_type(kinds[-1])  # raises for watts that cannot be
    if len({kind.name for kind in kinds}) < len(kinds):
        raise InputError(f"node types '{text}': a name is given twice")
    return tuple(kinds)
