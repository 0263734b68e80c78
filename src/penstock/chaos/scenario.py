"""What happens in one trial: drawn from its seed, and from nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from penstock.reconfigure.method import Method


class Kind(StrEnum):
    """What can be done to a run."""

    KILL_EXECUTOR = "kill an executor"
    STOP_EXECUTOR = "stop an executor for a while"
    KILL_PYTHON = "kill a Python worker"
    STOP_PYTHON = "stop a Python worker for a while"
    KILL_ZYGOTE = "kill what Python workers are forked from"
    KILL_WORKER = "kill the worker"
    STOP_WORKER = "stop the worker for a while"
    KILL_MASTER = "kill the master"
    STOP_MASTER = "stop the master for a while"
    KILL_DRIVER = "kill the driver"
    KILL_DRIVERS_JAVA = "kill the driver's Java"
    STOP_DRIVER = "stop the driver for a while"
    END_DRIVER = "tell the driver to end"
    FULL_DISK = "a full disk for a while"
    SLOW_DISK = "a slow disk for a while"
    CLOCK = "a clock that jumps, and jumps back"
    CLOCK_FOR_GOOD = "a clock that is set"
    ORDERS = "orders"
    SECOND_CONTROLLER = "a second controller"


# After these a run may end with status 1, and is started again: with a line that says so; what a full disk
# does not take may be anything. All others it has to live through.
MAY_END_IT = {Kind.KILL_DRIVERS_JAVA: "the driver's Java has ended", Kind.FULL_DISK: ""}

_FEWEST, _MOST = 2, 4  # faults
_LATEST_S = 4.0  # after the share of the input at which a fault is due
_SHORTEST_S, _LONGEST_S = 1.0, 8.0
_FARTHEST_S = 3600.0  # of a clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that happens."""

    kind: Kind
    share: float  # of the input that has been fed by then
    after_s: float  # and so long after that
    lasts_s: float  # of what ends by itself
    draw: float  # in [0, 1): which one of several, how far a clock jumps


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One trial."""

    seed: int
    protocol: Method
    joined: bool
    max_replicas: int
    faults: tuple[Fault, ...]  # in the order in which they are due

    @property
    def described(self) -> str:
        shape = "joined" if self.joined else "apart"
        return f"{self.protocol.value}, {shape}, up to {self.max_replicas} replicas"


def scenario(seed: int, kinds: Sequence[Kind] = tuple(Kind)) -> Scenario:
    """The same for the same seed; faults of these kinds only."""
    rng = np.random.default_rng(seed)
    protocol = (Method.LIVE, Method.PAUSE_AND_RESUME)[int(rng.integers(2))]
    joined, max_replicas = bool(rng.integers(2)), int(rng.integers(2, 4))
    faults = [
        Fault(
            kind=kinds[int(rng.integers(len(kinds)))],
            share=float(rng.uniform(0.0, 1.0)),
            after_s=float(rng.uniform(0.0, _LATEST_S)),
            lasts_s=float(rng.uniform(_SHORTEST_S, _LONGEST_S)),
            draw=float(rng.random()),
        )
        for _ in range(int(rng.integers(_FEWEST, _MOST + 1)))
    ]
    faults.sort(key=lambda fault: fault.share)
    return Scenario(
        seed=seed, protocol=protocol, joined=joined, max_replicas=max_replicas, faults=tuple(faults)
    )


def jump_s(fault: Fault) -> float:
    """How far a clock jumps, forward or back; small ones are as likely as large ones."""
    way = 1.0 if fault.draw < 0.5 else -1.0
    size = 2.0 * (fault.draw % 0.5)
    return way * float(_FARTHEST_S**size)
