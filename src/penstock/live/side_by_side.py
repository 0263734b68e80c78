"""What came of several contenders under one load, and whether our default policy did as well as it should."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from penstock.live.judging import MOST_LATE_PCT, SELDOM_FULL_PCT
from penstock.live.record import Interval, Summary, response_of
from penstock.live.tally import replicas_of

OURS = "adaptive"
DYNAMIC_ALLOCATION = "dynamic-allocation"
STATIC_MEAN = "static-mean"
STATIC_PEAK = "static-peak"
OUR_POLICY = f"policy '{OURS}'"  # in a sentence, where the objective is something else
RIVALS = (DYNAMIC_ALLOCATION, "ds2")

MOST_OF_PEAK_PCT = 70.0  # of static peak's replica-seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One interval of one run; what was not measured is None."""

    at_s: float  # since the run began
    rate: float | None  # tuples/s that came
    response_time_s: float | None  # as it is judged
    replicas: int  # of all operators, spares among them


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One run: in figures, and over time."""

    summary: Summary
    moments: tuple[Moment, ...]

    @property
    def name(self) -> str:
        return self.summary.policy

    @property
    def late_pct(self) -> float | None:
        return self.summary.violations_after_first_minute_pct

    @property
    def keeps(self) -> bool | None:
        """Whether it violated no more than may be; None where nothing was measured after the first minute."""
        return None if self.late_pct is None else self.late_pct <= MOST_LATE_PCT


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something our policy should do, and whether it did; None where it could not be judged."""

    holds: bool | None
    sentence: str
    short: str  # what is wrong, where it does not hold

    @property
    def told(self) -> str:
        verdict = {True: "holds", False: "does not hold", None: "not known"}[self.holds]
        return f"{verdict}: {self.sentence}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Contenders under the same load, in the order they ran."""

    objective_s: float
    contenders: tuple[Contender, ...]

    @property
    def cheapest(self) -> Contender | None:
        """Of those with few enough violations."""
        keeping = [one for one in self.contenders if one.keeps]
        return min(keeping, key=lambda one: one.summary.replica_seconds, default=None)

    def of_peak_pct(self, one: Contender) -> float | None:
        """Its replica-seconds as a share of static peak's; None where that did not run."""
        peak = self._named(STATIC_PEAK)
        if peak is None or not peak.summary.replica_seconds > 0:
            return None
        return 100 * one.summary.replica_seconds / peak.summary.replica_seconds

    def findings(self) -> tuple[Finding, ...]:
        """Of our default policy, where it is among them."""
        ours = self._named(OURS)
        if ours is None:
            return ()
        found = [self._kept(ours)]
        share = self.of_peak_pct(ours)
        if share is not None:
            found.append(_thrifty(share))
        return (*found, *(_beside(ours, one) for name in RIVALS if (one := self._named(name)) is not None))

    def remarks(self, one: Contender) -> tuple[str, ...]:
        """What the table says of it beside its figures."""
        said: list[str] = []
        if one.keeps is None:
            said.append("nothing measured after the first minute")
        elif not one.keeps:
            said.append(f"over {MOST_LATE_PCT:g} % violations")
        if one is self.cheapest:
            said.append(f"cheapest with at most {MOST_LATE_PCT:g} % violations")
        if one.name == OURS:
            said += [finding.short for finding in self.findings()[1:] if finding.holds is False]
        full = one.summary.host_full_pct
        if full is not None and full > SELDOM_FULL_PCT:
            said.append(f"the host's CPU was full in {full:.0f} % of the intervals")
        said += [failure.removesuffix(".") for failure in one.summary.failures]
        return tuple(said)

    def as_json(self) -> dict[str, Any]:
        cheapest = self.cheapest
        return {
            "objective_s": self.objective_s,
            "runs": [
                {
                    **one.summary.as_json(),
                    "of_static_peak_pct": self.of_peak_pct(one),
                    "remarks": self.remarks(one),
                    "over_time": [asdict(moment) for moment in one.moments],
                }
                for one in self.contenders
            ],
            "cheapest": None if cheapest is None else cheapest.name,
            "findings": [
                {"holds": finding.holds, "sentence": finding.sentence} for finding in self.findings()
            ],
        }

    def _named(self, name: str) -> Contender | None:
        return next((one for one in self.contenders if one.name == name), None)

    def _kept(self, ours: Contender) -> Finding:
        which = "of the intervals after the first minute"
        if ours.late_pct is None:
            return Finding(holds=None, sentence=f"{OUR_POLICY}: nothing was measured {which}", short="")
        return Finding(
            holds=ours.keeps,
            sentence=f"{OUR_POLICY} was over {self.objective_s:g} s in {ours.late_pct:.1f} % {which}; "
            f"it should be at most {MOST_LATE_PCT:g} %",
            short=f"over {MOST_LATE_PCT:g} % violations",
        )


def moments_of(intervals: Iterable[Interval], began_s: float) -> tuple[Moment, ...]:
    return tuple(
        Moment(
            at_s=interval.seen.at_s - began_s,
            rate=interval.seen.source_rate,
            response_time_s=response_of(interval),
            replicas=replicas_of(interval),
        )
        for interval in intervals
    )


def _thrifty(share_pct: float) -> Finding:
    return Finding(
        holds=share_pct <= MOST_OF_PEAK_PCT,
        sentence=f"{OUR_POLICY} took {share_pct:.0f} % of the replica-seconds of {STATIC_PEAK}; "
        f"it should be at most {MOST_OF_PEAK_PCT:g} %",
        short=f"over {MOST_OF_PEAK_PCT:g} % of {STATIC_PEAK}",
    )


def _beside(ours: Contender, rival: Contender) -> Finding:
    """No dearer, at no more violations: both, or it does not hold."""
    cost, its_cost = ours.summary.replica_seconds, rival.summary.replica_seconds
    price = f"{cost:.0f} against {its_cost:.0f} replica-seconds"
    dearer = cost > its_cost
    said = f"{OUR_POLICY} is {'dearer' if dearer else 'no dearer'} than {rival.name} ({price})"
    if ours.late_pct is None or rival.late_pct is None:
        return Finding(holds=None, sentence=f"{said}; violations were not measured", short="")
    worse = ours.late_pct > rival.late_pct
    late = f"{ours.late_pct:.1f} against {rival.late_pct:.1f} %"
    faults = [fault for fault, found in (("dearer", dearer), ("more violations", worse)) if found]
    return Finding(
        holds=not faults,
        sentence=f"{said}, at {'more' if worse else 'no more'} violations ({late})",
        short=f"{' and '.join(faults)} than {rival.name}",
    )
