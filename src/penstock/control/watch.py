"""What the safety chain remembers of every operator, and what it notices by itself.

How long ago something changed, how many replicas were wanted over time, whether a backlog
shrinks, whether the replicas that were added have helped, and how full the hosts are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan
from statistics import median_high
from typing import Any

from penstock.control.orders import Lift, Order, Override, Pause, Resume
from penstock.control.safety_settings import METRICS, READINGS, SafetySettings
from penstock.domain.decision import Decision, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Migrate, Request, ScaleOut

SATURATED = 0.95  # a measured utilisation above this only says "as busy as can be"
_RISE = 0.05  # of the load, above what it was over the intervals before
_COMPUTES = 0.5  # CPU used or queued for, per second at work: less, and it mostly waits for others


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How many replicas an operator's manager wanted at a given time."""

    at_s: float
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOutTrial:
    """A scale-out with the state before it, to judge whether it helped."""

    at_s: float
    before: int
    after: int
    rate: float
    response_time_s: float
    saturated: bool
    processed: float | None  # tuples/s
    rising: bool = False  # the load has just risen: the response time is still that of less


@dataclass(frozen=True, slots=True, kw_only=True)
class Futile:
    """A scale-out that did not help."""

    since_s: float
    rate: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One operator over time."""

    replicas: Replicas
    changed_at_s: float
    seen_at_s: float  # end of the last interval that was measured
    watched_at_s: float  # when it was last looked at
    first_seen_s: float = -inf  # -inf: before any warm-up that still matters
    wanted: tuple[Wanted, ...] = ()
    backlog: float | None = None
    drained: float | None = None  # tuples by which the backlog shrank since the previous observation
    processed: float | None = None  # tuples/s
    trial: ScaleOutTrial | None = None
    futile: Futile | None = None
    rates: tuple[float, ...] = ()  # the latest arrival rates
    computing: tuple[float, ...] = ()  # its latest shares of CPU in the time it worked

    @property
    def waits(self) -> bool:
        """Whether it is known to wait for others, not for the CPU, most of the time it works.

        By the median, of two readings the higher: while replicas come and go, one may be far too low.
        """
        return bool(self.computing) and median_high(self.computing) < _COMPUTES


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReading:
    """How busy a host's CPU was over the interval that ended at a given time."""

    at_s: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyMemory:
    """Everything the chain remembers."""

    tracks: Mapping[str, Track] = field(default_factory=dict)
    paused_until_s: float | None = None
    overrides: Mapping[str, Replicas] = field(default_factory=dict)
    changes_at_s: tuple[float, ...] = ()  # of the whole application, within the window of the budget
    hosts: Mapping[str, tuple[HostReading, ...]] = field(default_factory=dict)  # the latest, oldest first


def as_of(memory: SafetyMemory, now_s: float) -> SafetyMemory:
    """What an earlier process remembers, for one whose clock says that now it is then.

    A clock that was set back meanwhile would make all that was ever done younger than nothing, and whatever
    has to wait for a while would wait for as long as the clock was set back.
    """
    latest_s = max((track.watched_at_s for track in memory.tracks.values()), default=now_s)
    if latest_s <= now_s:
        return memory
    by_s = now_s - latest_s

    def trial(one: ScaleOutTrial | None) -> ScaleOutTrial | None:
        return None if one is None else replace(one, at_s=one.at_s + by_s)

    def futile(one: Futile | None) -> Futile | None:
        return None if one is None else replace(one, since_s=one.since_s + by_s)

    return replace(
        memory,
        tracks={
            name: replace(
                track,
                changed_at_s=track.changed_at_s + by_s,
                seen_at_s=track.seen_at_s + by_s,
                watched_at_s=track.watched_at_s + by_s,
                first_seen_s=track.first_seen_s + by_s,
                wanted=tuple(replace(one, at_s=one.at_s + by_s) for one in track.wanted),
                trial=trial(track.trial),
                futile=futile(track.futile),
            )
            for name, track in memory.tracks.items()
        },
        paused_until_s=None if memory.paused_until_s is None else memory.paused_until_s + by_s,
        changes_at_s=tuple(at_s + by_s for at_s in memory.changes_at_s),
        hosts={
            host: tuple(replace(one, at_s=one.at_s + by_s) for one in readings)
            for host, readings in memory.hosts.items()
        },
    )


def obey(memory: SafetyMemory, order: Order) -> SafetyMemory:
    """The memory once a person has given an order."""
    match order:
        case Pause():
            return replace(memory, paused_until_s=order.until_s)
        case Resume():
            return replace(memory, paused_until_s=None)
        case Override():
            return replace(memory, overrides={**memory.overrides, order.operator: order.target})
        case Lift():
            kept = {name: target for name, target in memory.overrides.items() if name != order.operator}
            return replace(memory, overrides=kept)


def plausible(seen: ApplicationObservation) -> ApplicationObservation:
    """Without values that cannot be measurements: not a number, negative, an infinite rate."""

    def kept(name: str, value: float | None) -> bool:
        if value is None or isnan(value) or value < 0:
            return False
        return value < inf or name.startswith("response_time")

    def cleaned(one: OperatorObservation) -> OperatorObservation:
        lost: dict[str, Any] = {name: None for name in METRICS if not kept(name, getattr(one, name))}
        return one._replace(**lost)

    loads = seen.host_loads or {}
    return seen._replace(
        operators=tuple(cleaned(one) for one in seen.operators),
        host_loads={host: share for host, share in loads.items() if 0 <= share <= 1},
    )


def noticed(
    settings: SafetySettings,
    memory: SafetyMemory,
    granted: Sequence[Request],
    decisions: Mapping[str, Decision],
    seen: ApplicationObservation,
) -> SafetyMemory:
    tracks = dict(memory.tracks)
    for one in seen.operators:
        track = _followed(settings, tracks.get(one.operator), one, seen.at_s)
        wanted = _wanted_total(one, granted, decisions)
        if wanted is not None:
            track = replace(track, wanted=(*track.wanted, Wanted(at_s=seen.at_s, total=wanted)))
        tracks[one.operator] = _judged_trial(settings, track, one, seen.at_s)
    paused = memory.paused_until_s
    if paused is not None and seen.at_s >= paused:
        paused = None
    begin = seen.at_s - settings.changes_window_s
    changes = tuple(at_s for at_s in memory.changes_at_s if at_s > begin)
    hosts = _followed_hosts(settings, memory.hosts, seen)
    return replace(memory, tracks=tracks, paused_until_s=paused, changes_at_s=changes, hosts=hosts)


def _followed_hosts(
    settings: SafetySettings, before: Mapping[str, tuple[HostReading, ...]], seen: ApplicationObservation
) -> dict[str, tuple[HostReading, ...]]:
    """Without those not heard of for a while: nobody knows how they are, or whether replicas are there."""
    hosts = dict(before)
    for host, share in (seen.host_loads or {}).items():
        readings = (*hosts.get(host, ()), HostReading(at_s=seen.at_s, share=share))
        hosts[host] = readings[-settings.host_readings :]
    oldest_s = seen.at_s - settings.host_window_s
    return {host: readings for host, readings in hosts.items() if readings[-1].at_s > oldest_s}


def _followed(settings: SafetySettings, track: Track | None, one: OperatorObservation, at_s: float) -> Track:
    if track is None:
        return Track(
            replicas=one.replicas,
            changed_at_s=at_s,
            seen_at_s=one.at_s,
            watched_at_s=at_s,
            first_seen_s=at_s,
            backlog=one.backlog,
            rates=() if one.arrival_rate is None else (one.arrival_rate,),
            computing=() if one.computing is None else (one.computing,),
        )
    if one.replicas != track.replicas:
        track = replace(track, replicas=one.replicas, changed_at_s=at_s)
    unwatched = 0 < settings.stale_after_s < at_s - track.watched_at_s
    begin = at_s - settings.scale_in_window_s
    # One entry from before the window shows that the whole window was watched.
    kept = [w for w in track.wanted if w.at_s <= begin][-1:] + [w for w in track.wanted if w.at_s > begin]
    track = replace(track, watched_at_s=at_s, wanted=() if unwatched else tuple(kept))
    if one.at_s <= track.seen_at_s:
        return track  # nothing new was measured
    drained = None if one.backlog is None or track.backlog is None else track.backlog - one.backlog
    processed = None
    if drained is not None and one.arrival_rate is not None:
        processed = one.arrival_rate + drained / (one.at_s - track.seen_at_s)
    rates = track.rates if one.arrival_rate is None else (*track.rates, one.arrival_rate)
    computing = track.computing if one.computing is None else (*track.computing, one.computing)
    return replace(
        track,
        seen_at_s=one.at_s,
        backlog=one.backlog,
        drained=drained,
        processed=processed,
        rates=rates[-READINGS:],
        computing=computing[-READINGS:],
    )


def _wanted_total(
    one: OperatorObservation, granted: Sequence[Request], decisions: Mapping[str, Decision]
) -> int | None:
    """What the managers wanted for an operator: by the Application Manager, or else by its own."""
    for request in granted:
        if request.operator == one.operator and not isinstance(request, Migrate):
            return request.target.total
    decision = decisions.get(one.operator)
    if decision is None:
        return None  # its manager was not asked this time
    return decision.target.total if isinstance(decision, Scale) else one.replicas.total


def _judged_trial(settings: SafetySettings, track: Track, one: OperatorObservation, at_s: float) -> Track:
    """Judge a scale-out once it has been in place long enough."""
    futile = track.futile
    if futile is not None and _over(settings, futile, one, at_s):
        track = replace(track, futile=None)
    trial = track.trial
    if trial is None or settings.ineffective_hold_s == 0:
        return track
    if one.replicas.total < trial.after:
        # Still on its way; one that never comes is forgotten.
        late = at_s - trial.at_s > settings.ineffective_hold_s
        return replace(track, trial=None) if late else track
    if at_s - track.changed_at_s < settings.warm_up_s or one.at_s <= track.changed_at_s:
        return track
    if one.arrival_rate is None or one.response_time_s is None:
        return track
    track = replace(track, trial=None)
    reason = _why_futile(settings, trial, one, track)
    if reason is None:
        return track
    return replace(track, futile=Futile(since_s=at_s, rate=one.arrival_rate, reason=reason))


def _why_futile(
    settings: SafetySettings, trial: ScaleOutTrial, one: OperatorObservation, track: Track
) -> str | None:
    rate, time = one.arrival_rate or 0.0, one.response_time_s or 0.0
    least = settings.least_improvement
    # Only the same load compares: where it rose, before or since, a good change may look like a bad one.
    more_load = trial.rising or rate > trial.rate * (1 + least)
    faster = time < trial.response_time_s * (1 - least)
    # An overloaded operator may still be overloaded with one more, and yet process more.
    processes_more = trial.saturated and (
        trial.processed is None or track.processed is None or track.processed > trial.processed * (1 + least)
    )
    if more_load or faster or processes_more:
        return None
    return (
        f"going from {trial.before} to {trial.after} replicas did not help: response time "
        f"{_ms(trial.response_time_s)} before, {_ms(time)} after, at {rate:.0f} t/s"
    )


def _over(settings: SafetySettings, futile: Futile, one: OperatorObservation, at_s: float) -> bool:
    if at_s - futile.since_s >= settings.ineffective_hold_s:
        return True
    # At another load the verdict no longer applies.
    return one.arrival_rate is not None and one.arrival_rate > 1.2 * futile.rate


def _ms(seconds: float) -> str:
    return "unbounded" if seconds == inf else f"{seconds * 1000:.0f} ms"


def carried_out(
    memory: SafetyMemory, granted: Sequence[Request], seen: ApplicationObservation
) -> SafetyMemory:
    """The memory once these changes have been commanded."""
    tracks = dict(memory.tracks)
    operators = {one.operator: one for one in seen.operators}
    for request in granted:
        name = request.operator
        track = replace(tracks[name], changed_at_s=seen.at_s)
        if isinstance(request, ScaleOut) and request.target.total > operators[name].replicas.total:
            track = replace(track, trial=_trial(request, operators[name], track, seen.at_s))
        tracks[name] = track
    changes = (*memory.changes_at_s, *(seen.at_s for _ in granted))
    return replace(memory, tracks=tracks, changes_at_s=changes)


def _trial(request: ScaleOut, one: OperatorObservation, track: Track, at_s: float) -> ScaleOutTrial | None:
    if one.arrival_rate is None or one.response_time_s is None or one.utilisation is None:
        return None
    return ScaleOutTrial(
        at_s=at_s,
        before=one.replicas.total,
        after=request.target.total,
        rate=one.arrival_rate,
        response_time_s=one.response_time_s,
        saturated=one.utilisation >= SATURATED or one.response_time_s == inf or (track.drained or 0) < 0,
        processed=track.processed,
        rising=_has_risen(track.rates),
    )


def _has_risen(rates: Sequence[float]) -> bool:
    """Whether the latest of these rates is clearly above those before it."""
    return len(rates) > 1 and rates[-1] > _mean(rates[:-1]) * (1 + _RISE)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
