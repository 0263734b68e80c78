"""What came of a live run, in words and cells: for its page and for the screen."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from penstock.live.judging import MOST_LATE_PCT, SELDOM_FULL_PCT

if TYPE_CHECKING:  # the command line shows its help without them
    from penstock.live.fixed_replicas import Fixed
    from penstock.live.kept import Kept
    from penstock.live.record import Summary

FIXED_HEADER = ("", "violations", "p50", "p95", "replicas", "replica-seconds")


class Ran(Protocol):
    """A run as it is kept: of an application, or attached to a query."""

    @property
    def kept(self) -> "Kept": ...
    @property
    def objective_s(self) -> float: ...


def verdict(summary: "Summary", objective_s: float, fixed: "Mapping[str, Fixed]") -> str:
    """In one sentence: whether the objective was kept, and what that cost beside static peak.

    And in others, where the hosts were full: that more replicas could not help; and where queries failed.
    """
    late, which = _late(summary)
    failed = "".join(f" {one[0].upper()}{one[1:].removesuffix('.')}." for one in summary.failures)
    if late is None:
        return f"nothing was measured.{failed}" if failed else "nothing was measured"
    peak = fixed.get("static peak")
    cost = ""
    if peak is not None and peak.replica_seconds > 0:
        share = 100 * peak.run_replica_seconds / peak.replica_seconds
        over = "" if peak.part_s is None else f" over {latest(peak.part_s)}"
        cost = f", at {share:.0f} % of the replica-seconds of static peak{over}"
    begins = "Missed its objective: kept" if missed(summary) else "Kept"
    return (
        f"{begins} {100 - late:.0f} % of {which} inside {objective_s:g} s{cost}.{_full_host(summary)}{failed}"
    )


def missed(summary: "Summary") -> bool:
    """Whether too many intervals were over the objective."""
    late, _ = _late(summary)
    return late is not None and late > MOST_LATE_PCT


def _late(summary: "Summary") -> tuple[float | None, str]:
    """Percent, and of what; of all intervals where the run was too short for others."""
    late = summary.violations_after_first_minute_pct
    if late is None:
        return summary.violations_pct, "the intervals"
    return late, "the intervals after the first minute"


def _full_host(summary: "Summary") -> str:
    full = summary.host_full_pct
    if full is None or full <= SELDOM_FULL_PCT:
        return ""
    return (
        f" The host's CPU was full in {full:.0f} % of the intervals: more replicas there cannot help; "
        "a faster or a second host would."
    )


def beside(summary: "Summary", fixed: "Mapping[str, Fixed]") -> list[tuple[str, ...]]:
    """The run, and what fixed numbers of replicas would have done."""
    ours = (
        summary.policy,
        _percent(summary.violations_pct),
        _seconds(summary.response_time_p50_s),
        _seconds(summary.response_time_p95_s),
        f"{summary.average_replicas:.2f}",
        f"{summary.replica_seconds:.0f}",
    )
    others = [
        (
            name if one.part_s is None else f"{name}, {latest(one.part_s)}",
            _percent(one.violations_pct),
            _seconds(one.response_time_p50_s),
            _seconds(one.response_time_p95_s),
            ", ".join(f"{operator} {count}" for operator, count in one.replicas.items()),
            f"{one.replica_seconds:.0f}",
        )
        for name, one in fixed.items()
    ]
    return [ours, *others]


def latest(part_s: float) -> str:
    """The part of a run that something is of, in words."""
    return f"the last {part_s / 60:.0f} minutes" if part_s < 7200 else f"the last {part_s / 3600:.0f} hours"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"


def cells(summary: "Summary") -> list[tuple[str, str]]:
    late = "-" if summary.violations_pct is None else f"{summary.violations_pct:.1f} % of intervals"
    return [
        ("tuples", f"{summary.tuples:,} in {summary.seconds:.0f} s"),
        *([("still waiting at the end", f"{summary.unfinished:,}")] if summary.unfinished else []),
        *([("results no longer kept", f"{summary.given_up:,} tuples")] if summary.given_up else []),
        ("violations", late),
        ("response time p50", _seconds(summary.response_time_p50_s)),
        ("response time p95", _seconds(summary.response_time_p95_s)),
        ("response time p99", _seconds(summary.response_time_p99_s)),
        ("replicas (mean)", f"{summary.average_replicas:.2f}"),
        ("replica-seconds", f"{summary.replica_seconds:.0f}"),
        ("cost", f"{summary.cost:.3f}"),
        ("reconfigurations", str(summary.reconfigurations)),
        ("downtime", f"{summary.downtime_pct:.1f} %"),
        *(
            []
            if summary.host_full_pct is None
            else [("host's CPU full", f"{summary.host_full_pct:.1f} % of intervals")]
        ),
    ]
