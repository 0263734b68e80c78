"""How careful the safety chain is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, isfinite

from penstock.domain.errors import InputError

DAY_S = 86_400.0
FULL_HOST = 0.95  # share of a host's CPU busy from which nothing is left for another replica
READINGS = 3  # that count together: a single one is noise
_HOST_S = 15.0  # of a host's CPU
METRICS = (
    "arrival_rate",
    "response_time_s",
    "utilisation",
    "response_time_p95_s",
    "service_time_s",
    "service_variance_s2",
    "backlog",
    "skew",
    "computing",
)
NEEDED_METRICS = ("arrival_rate", "response_time_s", "utilisation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A time in which nothing may change; a `daily` one recurs every day and may go past midnight."""

    start_s: float  # in the same seconds as observations, or seconds of the day (UTC)
    end_s: float
    daily: bool = False

    def __post_init__(self) -> None:
        if self.daily:
            if not (0 <= self.start_s <= DAY_S and 0 <= self.end_s <= DAY_S and self.start_s != self.end_s):
                raise InputError(
                    f"excluded window {self.start_s:g}-{self.end_s:g} s of the day: not within 0 to 86400"
                )
        elif not self.start_s < self.end_s:
            raise InputError(
                f"excluded window {self.start_s:g}-{self.end_s:g} s: it must end after it starts"
            )

    def contains(self, at_s: float) -> bool:
        if not self.daily:
            return self.start_s <= at_s < self.end_s
        of_day = at_s % DAY_S
        if self.start_s < self.end_s:
            return self.start_s <= of_day < self.end_s
        return of_day >= self.start_s or of_day < self.end_s

    def __str__(self) -> str:
        return f"{self.start_s:g}-{self.end_s:g} s{' of every day' if self.daily else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetySettings:
    """How careful to be. What turns each guard off is in docs/control.md: zero, False, None or nothing."""

    interval_s: float = 30.0  # between two observations
    min_replicas: Mapping[str, int] = field(default_factory=dict)  # by operator; 1 where not named
    max_replicas: Mapping[str, int] = field(default_factory=dict)  # by operator; no limit where not named
    needed_metrics: tuple[str, ...] = NEEDED_METRICS
    stale_after_intervals: float = 3.0
    warm_up_s: float = 60.0  # after a change, and after the first observation
    # Whoever decides goes by the load that arrives, so a change need not be given time before replicas are
    # added. A copy of the policy's trait: what was recorded without it replays as it was decided.
    anticipating: bool = False
    catch_up_backlog_s: float = 10.0  # a backlog of this many seconds of arrivals has to be worked off
    catch_up_limit_s: float = (
        300.0  # after a change; a backlog that lasts longer no longer counts as catching up
    )
    scale_in_window_s: float = 300.0
    max_cost: float | None = None  # price of all replicas together
    max_nodes: int | None = None  # replicas of all operators together
    max_changes: int | None = None  # of the application within the window below
    changes_window_s: float = 3600.0
    excluded: tuple[Window, ...] = ()
    least_improvement: float = 0.05  # of the response time, by one more replica
    ineffective_hold_s: float = 600.0  # how long no replicas are added after one that did not help
    max_skew: float = 1.75  # busiest replica over the mean; above, it is a hot key
    busy: float = 0.8  # mean utilisation from which more replicas help in spite of a hot key
    full_host: float = FULL_HOST  # share of a host's CPU that is all of it
    # No more replicas at once that may compute than the CPU left can hold. Off unless it is asked for: what
    # was recorded before it was there replays as it was decided.
    spare_cpu: bool = False

    def __post_init__(self) -> None:
        self._check_replicas()
        self._check_numbers()
        for metric in self.needed_metrics:
            if metric not in METRICS:
                raise InputError(
                    f"safety: needed metric '{metric}': unknown; choose from {', '.join(METRICS)}"
                )

    def _check_replicas(self) -> None:
        for name in ("min_replicas", "max_replicas"):
            for operator, count in getattr(self, name).items():
                if count < 1:
                    raise InputError(
                        f"safety: operator '{operator}': {name}={count}; at least one replica must run"
                    )
        for operator, least in self.min_replicas.items():
            most = self.max_replicas.get(operator, least)
            if least > most:
                raise InputError(
                    f"safety: operator '{operator}': min_replicas={least} above max_replicas={most}"
                )

    def _check_numbers(self) -> None:
        for name in (
            "stale_after_intervals",
            "warm_up_s",
            "catch_up_backlog_s",
            "catch_up_limit_s",
            "scale_in_window_s",
            "changes_window_s",
            "ineffective_hold_s",
            "max_skew",
            "busy",
        ):
            value = getattr(self, name)
            if not (isfinite(value) and value >= 0):
                raise InputError(f"safety: {name}={value}; it must be a number and not negative")
        if not (isfinite(self.interval_s) and self.interval_s > 0):
            raise InputError(f"safety: interval_s={self.interval_s}; it must be positive")
        if not 0 <= self.full_host <= 1:
            raise InputError(f"safety: full_host={self.full_host}; it is a share, at least 0 and at most 1")
        if not 0 <= self.least_improvement < 1:
            raise InputError(
                f"safety: least_improvement={self.least_improvement}; it must be at least 0 and below 1"
            )
        if self.max_cost is not None and not self.max_cost > 0:
            raise InputError(f"safety: max_cost={self.max_cost}; it must be positive, or None for no cap")
        if self.max_nodes is not None and self.max_nodes < 1:
            raise InputError(f"safety: max_nodes={self.max_nodes}; it must be positive, or None for no cap")
        if self.max_changes is not None and self.max_changes < 1:
            raise InputError(
                f"safety: max_changes={self.max_changes}; it must be positive, or None for no limit"
            )

    @property
    def stale_after_s(self) -> float:
        return self.stale_after_intervals * self.interval_s

    @property
    def host_readings(self) -> int:
        """That count together: a few are noise, or a Java machine that starts."""
        return max(READINGS, ceil(_HOST_S / self.interval_s))

    @property
    def host_window_s(self) -> float:
        return self.host_readings * self.interval_s


# A chain that watches and obeys orders, with all guards off that settings can turn off: it still objects to
# a second change of an operator at once, to other node types and to less than one replica.
# `Controller(safety=None)` has no chain.
UNGUARDED = SafetySettings(
    needed_metrics=(),
    stale_after_intervals=0.0,
    warm_up_s=0.0,
    catch_up_backlog_s=0.0,
    scale_in_window_s=0.0,
    ineffective_hold_s=0.0,
    max_skew=0.0,
    full_host=0.0,
    spare_cpu=False,
)
