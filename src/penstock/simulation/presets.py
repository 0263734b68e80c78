"""The infrastructures and workloads of Russo 2023, and how its published code differs from its text."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from penstock.domain.errors import InputError
from penstock.domain.infrastructure import Infrastructure, NodeType
from penstock.perf.power import sandy_bridge

# Table 1 of Russo 2023. The first n entries are used when n node types are asked for.
SPEEDUPS: dict[str, tuple[float, ...]] = {
    "A": (1.0, 0.7, 1.3, 0.9, 1.7, 0.8, 1.8, 2.0, 1.65, 1.5),
    "B": (1.0, 0.05, 30.0, 0.1, 0.2, 0.4, 0.8, 2.0, 5.0, 7.0),
    "B2": (1.0, 0.05, 30.0, 0.1, 0.2, 0.4, 0.8, 2.0, 5.0, 7.0),
    # Behind the printed rows for B with ten types; Table 1 came later.
    "B-old": (1.0, 0.05, 7.0, 0.1, 0.2, 0.4, 0.8, 2.0, 5.0, 10.0),
}
# One machine whose cores all run at one frequency, 2.0 GHz down to 1.2 (De Matteis 2017).
FREQUENCIES = "F"
LINEAR = "linear"  # 1, 1.1, 1.2, ...: any number of types


class FirstReplica(Enum):
    """Node type of the replica an operator starts with."""

    POLICY = "policy"  # what the policy would pick: its own type, or the cheapest
    CHEAPEST = "cheapest"
    FASTEST = "fastest"
    FIRST = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """Where the paper's text and the code behind its tables differ."""

    name: str
    charge_before: bool  # pay for the deployment before the decision instead of after it
    scale_by_all_types: bool  # C_max by the largest speedup of all ten types, offered or not
    first_replica: FirstReplica
    old_b_speedups: bool  # ten types of B as before Table 1
    error_on_service_time: (
        bool  # QL+PDS+ gets the service time wrong, not the rate; no speed passes its neighbours'
    )
    ignore_speedups: bool  # DRS and Lohrmann as coded
    latency_at_source_rate: bool  # in a graph, every operator's response time at the source's rate
    b2_price_exponent: float


PAPER = Variant(
    name="paper",
    charge_before=False,
    scale_by_all_types=False,
    first_replica=FirstReplica.POLICY,
    old_b_speedups=False,
    error_on_service_time=False,
    ignore_speedups=False,
    latency_at_source_rate=False,
    b2_price_exponent=1.1,
)
PUBLISHED = Variant(
    name="published",
    charge_before=True,
    scale_by_all_types=True,
    first_replica=FirstReplica.FIRST,
    old_b_speedups=True,
    error_on_service_time=True,
    ignore_speedups=True,
    latency_at_source_rate=True,
    b2_price_exponent=1.5,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The node types of an experiment, and the price that normalises its costs."""

    infrastructure: Infrastructure
    normalising_price: float


def family_and_count(name: str) -> tuple[str, int]:
    """`A:3` is infrastructure A with three node types."""
    family, _, count = name.partition(":")
    known = (*SPEEDUPS, FREQUENCIES, LINEAR)
    if family not in known:
        raise InputError(f"infrastructure '{name}': unknown; choose one of {', '.join(known)}, as in A:3")
    most = len(SPEEDUPS.get(family, ())) or (len(sandy_bridge().ghz) if family == FREQUENCIES else 62)
    if count not in {str(number) for number in range(1, most + 1)}:
        raise InputError(
            f"infrastructure '{name}': give the number of node types, 1 to {most}, as in {family}:3"
        )
    return family, int(count)


def scenario(name: str, variant: Variant) -> Scenario:
    """The first three node types of infrastructure A for `A:3`."""
    family, count = family_and_count(name)
    if family == FREQUENCIES:
        return Scenario(
            infrastructure=Infrastructure(name=name, node_types=_frequencies(count)), normalising_price=1.0
        )
    if variant.old_b_speedups and family == "B" and count == 10:
        family = "B-old"
    speedups = SPEEDUPS.get(family) or tuple(1 + 0.1 * i for i in range(count))
    price_of: Callable[[float], float] = (
        (lambda speedup: speedup**variant.b2_price_exponent) if family == "B2" else (lambda speedup: speedup)
    )
    types = tuple(
        NodeType(name=f"{family.lower()}{index + 1}", speedup=speedup, price=price_of(speedup))
        for index, speedup in enumerate(speedups[:count])
    )
    scale = max(speedups) if variant.scale_by_all_types else max(t.price for t in types)
    return Scenario(infrastructure=Infrastructure(name=name, node_types=types), normalising_price=scale)


def _frequencies(count: int) -> tuple[NodeType, ...]:
    """The fastest first; a core costs the same at all of them, but for its power."""
    power = sandy_bridge()
    fastest = power.ghz[-1]
    return tuple(
        NodeType(name=f"{ghz:g}ghz", speedup=ghz / fastest, price=1.0, watts=float(power.watts(1, ghz)))
        for ghz in power.ghz[::-1][:count]
    )


def published_first_replica(family: str, node_types: int, policy: str) -> FirstReplica:
    """The tables mix two versions of the code: threshold rows of B with 3 and 6 types are the newer."""
    if policy in ("threshold-c", "threshold-s", "threshold-0") and family in ("B", "B2") and node_types < 10:
        return FirstReplica.POLICY
    return FirstReplica.FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPreset:
    """Settings that belong to a trace."""

    service_rate: float  # tuples/s of one replica on speedup 1
    max_rate: float  # tuples/s at the top of the highest level
    levels: int = 30
    service_scv: float = 0.5


WORKLOADS: dict[str, WorkloadPreset] = {
    "taxi": WorkloadPreset(service_rate=180.0, max_rate=650.0),
    "tweets": WorkloadPreset(service_rate=1620.0, max_rate=9000.0),
}


def workload_named(name: str) -> WorkloadPreset:
    if name not in WORKLOADS:
        raise InputError(f"preset '{name}': unknown; choose one of {', '.join(WORKLOADS)}")
    return WORKLOADS[name]


def workload_of_trace(trace_name: str) -> WorkloadPreset | None:
    """The preset whose name the trace's begins with, if any."""
    for name, workload in WORKLOADS.items():
        if trace_name.startswith(name):
            return workload
    return None
