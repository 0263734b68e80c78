"""What the user asks for: a response time, how often it may be missed, and what weighs how much."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from penstock.domain.application import Path
from penstock.domain.errors import InputError

SHORTEST_S = 1e-9  # no machine answers sooner


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of the cost of one interval (Russo 2023, eq. 2); they sum to 1."""

    performance: float = 0.6
    resources: float = 0.2
    reconfiguration: float = 0.2

    def __post_init__(self) -> None:
        parts = (self.performance, self.resources, self.reconfiguration)
        if any(not isfinite(part) or part < 0 for part in parts):
            raise InputError(f"weights {parts}: each must be a number and not negative")
        if abs(sum(parts) - 1.0) > 1e-9:
            raise InputError(f"weights {parts}: they sum to {sum(parts):.12g}; they must sum to 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Maximum response time from source to sink, and how much missing and changing is tolerated."""

    response_time_s: float | None  # of every path; None: only the paths named below have a limit
    violations: float = 0.05  # tolerated fraction of intervals over the response time
    reconfigurations: float = 0.10  # tolerated fraction of intervals with a change
    weights: Weights = field(default_factory=Weights)
    per_path_s: Mapping[Path, float] = field(default_factory=dict)  # goes before response_time_s

    def __post_init__(self) -> None:
        limits = {} if self.response_time_s is None else {"every path": self.response_time_s}
        limits |= {f"path {'-'.join(path)}": limit for path, limit in self.per_path_s.items()}
        for where, limit in limits.items():
            if not (isfinite(limit) and limit > 0):
                raise InputError(f"objective of {where}: response time {limit} s; it must be positive")
            if limit < SHORTEST_S:  # shares of it would be 0
                raise InputError(
                    f"objective of {where}: response time {limit} s; give {SHORTEST_S} s or more"
                )
        for name, share in (("violations", self.violations), ("reconfigurations", self.reconfigurations)):
            if not 0 <= share <= 1:
                raise InputError(f"objective: {name}={share}; it must be a fraction from 0 to 1")

    def for_path(self, path: Path) -> float:
        limit = self.per_path_s.get(path, self.response_time_s)
        if limit is None:
            raise InputError(
                f"objective: path {'-'.join(path)} has none; give it a limit, or one for every path"
            )
        return limit
