"""What stands between a decision and the world: a chain of guards, each with one reason to object.

A guard sees one request, what was observed, and what the chain remembers, and answers nothing
(fine), a veto, or a veto with a smaller change in its place. The chain is pure; every veto is
kept as `Refused` with a sentence that has the numbers in it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

from penstock.control.safety_settings import READINGS, SafetySettings
from penstock.control.watch import HostReading, SafetyMemory, Track, noticed, plausible
from penstock.domain.decision import Decision
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Migrate, Refused, Request, ScaleIn, ScaleOut


class Admitted(NamedTuple):
    """What may be done, and every objection on the way."""

    granted: tuple[Request, ...]
    vetoes: tuple[Refused, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Veto:
    """Why not, and the smaller change that would be allowed."""

    reason: str
    instead: Request | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a guard may look at."""

    settings: SafetySettings
    node_types: tuple[NodeType, ...]
    memory: SafetyMemory
    seen: ApplicationObservation
    one: OperatorObservation  # the operator the request is about
    planned: Mapping[str, Replicas]  # of all operators, with what was admitted so far
    changed: frozenset[str]  # operators already changed in this round

    @property
    def track(self) -> Track:
        return self.memory.tracks[self.one.operator]

    @property
    def overridden(self) -> Replicas | None:
        return self.memory.overrides.get(self.one.operator)


Guard = Callable[[Request, View], Veto | None]


def admit(
    settings: SafetySettings,
    node_types: tuple[NodeType, ...],
    memory: SafetyMemory,
    granted: Sequence[Request],
    decisions: Mapping[str, Decision],
    seen: ApplicationObservation,
) -> tuple[Admitted, SafetyMemory]:
    """The requests that pass every guard. `carried_out` then remembers which were really carried out."""
    seen = plausible(seen)
    memory = noticed(settings, memory, granted, decisions, seen)
    operators = {one.operator: one for one in seen.operators}
    planned = {name: _with_those_coming(one) for name, one in operators.items()}
    passed: list[Request] = []
    vetoes: list[Refused] = []
    by_hand = [(request, GUARDS_OF_OVERRIDES) for request in _of_overrides(memory, operators)]
    for request, guards in (*by_hand, *((request, GUARDS) for request in granted)):
        if request.operator not in operators:
            vetoes.append(Refused(request, f"operator '{request.operator}' was not observed"))
            continue
        view = View(
            settings=settings,
            node_types=node_types,
            memory=memory,
            seen=seen,
            one=operators[request.operator],
            planned=planned,
            changed=frozenset(done.operator for done in passed),
        )
        admitted, no = _judged(request, guards, view)
        vetoes += no
        if admitted is not None:
            passed.append(admitted)
            if not isinstance(admitted, Migrate):
                planned = {**planned, admitted.operator: admitted.target}
    return Admitted(granted=tuple(passed), vetoes=tuple(vetoes)), memory


def _with_those_coming(one: OperatorObservation) -> Replicas:
    if one.coming is None:
        return one.replicas
    pairs = zip(one.replicas.counts, one.coming, strict=True)
    return Replicas(tuple(now + later for now, later in pairs))


def _judged(request: Request, guards: Sequence[Guard], view: View) -> tuple[Request | None, list[Refused]]:
    vetoes: list[Refused] = []
    for guard in guards:
        veto = guard(request, view)
        if veto is None:
            continue
        vetoes.append(Refused(request, veto.reason))
        if veto.instead is None:
            return None, vetoes
        request = veto.instead
    return request, vetoes


def _of_overrides(
    memory: SafetyMemory, operators: Mapping[str, OperatorObservation]
) -> list[ScaleOut | ScaleIn]:
    requests: list[ScaleOut | ScaleIn] = []
    for name, target in memory.overrides.items():
        if name in operators and operators[name].replicas != target:
            kind = ScaleIn if target.total < operators[name].replicas.total else ScaleOut
            requests.append(kind(operator=name, target=target, nodes=(), score=1.0, reason="manual override"))
    return requests


# --- The guards, in the order they are asked. ----------------------------------------------------


def paused(request: Request, view: View) -> Veto | None:
    until = view.memory.paused_until_s
    if until is None:
        return None
    return Veto(reason=f"paused for another {until - view.seen.at_s:.0f} s")


def in_excluded_window(request: Request, view: View) -> Veto | None:
    for window in view.settings.excluded:
        if window.contains(view.seen.at_s):
            return Veto(reason=f"nothing may change in the excluded window {window}")
    return None


def under_way(request: Request, view: View) -> Veto | None:
    name = view.one.operator
    if name in view.changed:
        return Veto(reason=f"operator '{name}' is changed by another request of this round")
    if name in view.seen.reconfiguring and not _grows_further(request, view):
        return Veto(reason=f"the last change of operator '{name}' is not finished")
    return None


def _grows_further(request: Request, view: View) -> bool:
    """More replicas of an operator that is growing: more than will be there anyway, of every node type."""
    if view.one.coming is None or not isinstance(request, ScaleOut):
        return False
    there, asked = _with_those_coming(view.one), request.target
    pairs = zip(asked.counts, there.counts, strict=False)
    return asked.total > there.total and all(wanted >= known for wanted, known in pairs)


def overridden(request: Request, view: View) -> Veto | None:
    if view.overridden is None:
        return None
    return Veto(reason=f"manual override: {_counts(view.overridden)} until it is lifted")


def other_node_types(request: Request, view: View) -> Veto | None:
    if isinstance(request, Migrate):
        return None
    asked, known = len(request.target.counts), len(view.one.replicas.counts)
    if asked == known == len(view.node_types):
        return None
    return Veto(
        reason=f"it names {asked} node types; {known} were observed, {len(view.node_types)} are known"
    )


def stale(request: Request, view: View) -> Veto | None:
    limit = view.settings.stale_after_s
    age = view.seen.at_s - view.one.at_s
    if limit == 0 or age <= limit:
        return None
    return Veto(reason=f"the last measurement is {age:.0f} s old, more than {limit:.0f} s")


def blind(request: Request, view: View) -> Veto | None:
    missing = [name for name in view.settings.needed_metrics if getattr(view.one, name) is None]
    return Veto(reason=f"{', '.join(missing)} not measured") if missing else None


def warming_up(request: Request, view: View) -> Veto | None:
    anticipated = _is_anticipated(request, view)
    since = view.seen.at_s - (view.track.first_seen_s if anticipated else view.track.changed_at_s)
    if since >= view.settings.warm_up_s:
        return None
    what = "first seen" if anticipated else "changed"
    return Veto(
        reason=f"{what} {since:.0f} s ago; measurements mean something after {view.settings.warm_up_s:.0f} s"
    )


def _is_anticipated(request: Request, view: View) -> bool:
    """For the load that arrives: wanted whatever is measured right after a change."""
    return view.settings.anticipating and not isinstance(request, Migrate)


def catching_up(request: Request, view: View) -> Veto | None:
    settings = view.settings
    if settings.catch_up_backlog_s == 0 or isinstance(request, Migrate):
        return None
    if isinstance(request, ScaleIn):
        for name, backlog in _behind(view).items():
            if name == view.one.operator or _is_recent(view.memory.tracks[name], view):
                return Veto(reason=f"operator '{name}' has {backlog} to work off")
        return None
    own = _behind(view).get(view.one.operator)
    if own is None or not _is_recent(view.track, view) or _is_anticipated(request, view):
        return None
    drained = view.track.drained
    if drained is None or drained <= 0:
        return None  # it does not drain: more replicas are needed
    return Veto(reason=f"catching up after a change: {own}, {drained:.0f} tuples fewer than before")


def _behind(view: View) -> dict[str, str]:
    """Operators with a backlog, and how much it is."""
    found: dict[str, str] = {}
    for one in view.seen.operators:
        if one.backlog is None:
            continue
        limit = view.settings.catch_up_backlog_s * (one.arrival_rate or 0.0)
        if one.backlog > limit:
            seconds = f" ({one.backlog / one.arrival_rate:.0f} s of arrivals)" if one.arrival_rate else ""
            found[one.operator] = f"{one.backlog:.0f} tuples{seconds}"
    return found


def _is_recent(track: Track, view: View) -> bool:
    return view.seen.at_s - track.changed_at_s < view.settings.catch_up_limit_s


def hot_key(request: Request, view: View) -> Veto | None:
    skew, load = view.one.skew, view.one.utilisation
    limit = view.settings.max_skew
    if not _adds(request, view) or limit == 0 or skew is None or not skew > limit:
        return None
    others = "" if load is None else f", the mean is {load / skew:.2f} busy"
    if load is not None and load / skew >= view.settings.busy:
        return None
    return Veto(
        reason=f"the busiest replica carries {skew:.1f} times the mean load{others}: a hot key or "
        "partition, which more replicas do not relieve"
    )


def full_host(request: Request, view: View) -> Veto | None:
    """On a full host one more replica that computes only takes CPU from the others; one that waits works."""
    hosts, limit = view.memory.hosts, view.settings.full_host
    if limit == 0 or not hosts or not _adds(request, view) or view.track.waits:
        return None
    # A new replica may come to any of them: one that has room, or is not known well enough, is room.
    means = {host: sum(one.share for one in readings) / len(readings) for host, readings in hosts.items()}
    if min(means.values()) < limit or not all(_known(view.settings, one) for one in hosts.values()):
        return None
    host = min(means, key=lambda name: means[name])
    for_s = hosts[host][-1].at_s - hosts[host][0].at_s + view.settings.interval_s
    busy = f"{100 * means[host]:.0f} % of its CPU busy for {for_s:.0f} s"
    if len(hosts) == 1:
        return Veto(reason=f"host '{host}' is full ({busy}): more replicas on it cannot help")
    return Veto(
        reason=f"all {len(hosts)} hosts are full (the least so, '{host}': {busy}): more replicas on them "
        "cannot help"
    )


def little_cpu_left(request: Request, view: View) -> Veto | None:
    """No more replicas at once that may compute than the CPU that is left can hold; one, to find out."""
    hosts, limit = view.memory.hosts, view.settings.full_host
    if not view.settings.spare_cpu or limit == 0 or not hosts or view.track.waits:
        return None
    if not isinstance(request, ScaleOut) or not _adds(request, view):
        return None
    here, coming = view.one.replicas.total, sum(view.one.coming or ())
    shares = [_busy_since(view.track.changed_at_s, one, view.settings) for one in hosts.values()]
    known = [share for share in shares if share is not None]
    if len(known) < len(shares):
        room, found = 1, f"how busy the CPU is with {here} replicas that may compute is not known yet: "
        found += "one more, to find out"
    else:
        busy, left = sum(known), sum(max(limit - one, 0.0) for one in known)
        # What others use there counts as theirs: so they may come more slowly than they could, not faster.
        room = 1 if busy == 0 else max(int(left * here / busy), 1)
        found = f"{here} replicas that may compute, and the CPU {100 * busy / len(known):.0f} % busy: "
        found += f"room for {room} more"
    if request.target.total <= here + room:
        return None
    smaller = _towards(request, view.one.replicas, here + room) if coming < room else None
    return Veto(reason=found, instead=smaller)


def _busy_since(
    changed_at_s: float, readings: Sequence[HostReading], settings: SafetySettings
) -> float | None:
    """How busy a host is with the replicas there are now; None where no reading is of them alone.

    A mean of readings from before a change is far too low for more replicas: 2 that take a quarter of a host
    were taken for room for 5, and the 7 at that same quarter for room for 19 more.
    """
    # Each reading begins where the one before ends.
    begins = (readings[0].at_s - settings.interval_s, *(one.at_s for one in readings))
    pairs = zip(begins, readings, strict=False)
    shares = [one.share for began_s, one in pairs if began_s >= changed_at_s][-READINGS:]
    return max(fmean(shares), shares[-1]) if shares else None


def _known(settings: SafetySettings, readings: Sequence[HostReading]) -> bool:
    """Well enough. A host elsewhere is heard of when tasks end there, which may be seldom."""
    for_s = readings[-1].at_s - readings[0].at_s
    return len(readings) >= settings.host_readings or (
        len(readings) >= READINGS and for_s >= settings.host_window_s
    )


def futile(request: Request, view: View) -> Veto | None:
    known = view.track.futile
    if known is None or not _adds(request, view):
        return None
    left = view.settings.ineffective_hold_s - (view.seen.at_s - known.since_s)
    return Veto(reason=f"{known.reason}; no more are added for {left:.0f} s")


def hasty_scale_in(request: Request, view: View) -> Veto | None:
    """The largest number wanted within the window wins."""
    window = view.settings.scale_in_window_s
    if window == 0 or not isinstance(request, ScaleIn):
        return None
    wanted, now = view.track.wanted, view.seen.at_s
    watched = now - wanted[0].at_s if wanted else 0.0
    if watched < window:
        return Veto(
            reason=f"fewer replicas wanted, but watched for {watched:.0f} s only; judged over {window:.0f} s"
        )
    largest = max(entry.total for entry in wanted if entry.at_s > now - window)
    if largest <= request.target.total:
        return None
    reason = f"{largest} replicas were wanted within the last {window:.0f} s"
    return Veto(reason=reason, instead=_towards(request, view.one.replicas, largest))


def over_budget(request: Request, view: View) -> Veto | None:
    most = view.settings.max_changes
    made = len(view.memory.changes_at_s) + len(view.changed)
    if most is None or made < most:
        return None
    window = view.settings.changes_window_s
    return Veto(reason=f"{made} changes within the last {window:.0f} s; the budget is {most}")


def out_of_bounds(request: Request, view: View) -> Veto | None:
    if isinstance(request, Migrate):
        return None
    name, now, target = view.one.operator, view.one.replicas, request.target
    least = view.settings.min_replicas.get(name, 1)
    most = view.settings.max_replicas.get(name)
    if isinstance(request, ScaleIn) and target.total < least:
        return Veto(
            reason=f"{target.total} replicas of operator '{name}' asked for; {least} is the least",
            instead=_towards(request, now, least),
        )
    # Fewer is never wrong where too many run.
    if most is not None and target.total > most and not isinstance(request, ScaleIn):
        return Veto(
            reason=f"{target.total} replicas of operator '{name}' asked for; {most} is the most",
            instead=_towards(request, now, most),
        )
    return None


def nothing_to_share(request: Request, view: View) -> Veto | None:
    most = view.one.useful_replicas
    if most is None or isinstance(request, Migrate) or not _adds(request, view):
        return None
    if request.target.total <= most:
        return None
    return Veto(
        reason=f"{request.target.total} replicas of operator '{view.one.operator}' asked for; its work comes "
        f"in partitions for {most}, and more would have nothing to do",
        instead=_towards(request, view.one.replicas, most),
    )


def over_node_cap(request: Request, view: View) -> Veto | None:
    most = view.settings.max_nodes
    if most is None or isinstance(request, Migrate | ScaleIn):
        return None
    others = sum(replicas.total for name, replicas in view.planned.items() if name != view.one.operator)
    total = others + request.target.total
    if total <= most or not _adds(request, view):
        return None
    return Veto(
        reason=f"{total} nodes in all; the cap is {most}",
        instead=_towards(request, view.one.replicas, most - others),
    )


def over_cost_cap(request: Request, view: View) -> Veto | None:
    most = view.settings.max_cost
    if most is None or isinstance(request, Migrate):
        return None
    others = sum(
        _price(replicas, view) for name, replicas in view.planned.items() if name != view.one.operator
    )
    before, after = _price(view.one.replicas, view), _price(request.target, view)
    # Rounding must not refuse what costs exactly the cap.
    if after <= before or others + after <= most * (1 + 1e-12):
        return None
    reason = f"it would cost {others + after:g} per hour; the cap is {most:g}"
    if isinstance(request, ScaleIn):
        return Veto(reason=reason)
    smaller: ScaleOut | ScaleIn | None = request
    while smaller is not None and others + _price(smaller.target, view) > most * (1 + 1e-12):
        smaller = _towards(smaller, view.one.replicas, smaller.target.total - 1)
    return Veto(reason=reason, instead=smaller)


def _price(replicas: Replicas, view: View) -> float:
    return sum(count * kind.price for count, kind in zip(replicas.counts, view.node_types, strict=True))


def _adds(request: Request, view: View) -> bool:
    return isinstance(request, ScaleOut) and request.target.total > view.one.replicas.total


def _counts(replicas: Replicas) -> str:
    return f"{replicas.total} replicas" if len(replicas.counts) == 1 else f"replicas {replicas.counts}"


def _towards(request: ScaleOut | ScaleIn, now: Replicas, total: int) -> ScaleOut | ScaleIn | None:
    """The part of a change that ends at this many replicas; None where there is no such part.

    Part of an exchange of node types would be a different deployment altogether: it is all or nothing.
    """
    deltas = [after - before for before, after in zip(now.counts, request.target.counts, strict=True)]
    sign = -1 if isinstance(request, ScaleIn) else 1
    steps = (total - now.total) * sign
    if steps < 1 or any(delta * sign < 0 for delta in deltas):
        return None
    counts, position = list(now.counts), 0
    nodes: list[str] = []
    for index, delta in enumerate(deltas):
        taken = min(abs(delta), steps)
        counts[index] += sign * taken
        nodes += request.nodes[position : position + taken]  # they are named in the order of the types
        position += abs(delta)
        steps -= taken
    return replace(request, target=Replicas(tuple(counts)), nodes=tuple(nodes))


LIMITS: tuple[Guard, ...] = (out_of_bounds, nothing_to_share, over_node_cap, over_cost_cap)
GUARDS_OF_OVERRIDES: tuple[Guard, ...] = (paused, in_excluded_window, under_way, other_node_types, *LIMITS)
GUARDS: tuple[Guard, ...] = (
    paused,
    in_excluded_window,
    overridden,
    under_way,
    other_node_types,
    stale,
    blind,
    warming_up,
    catching_up,
    hot_key,
    full_host,
    little_cpu_left,
    futile,
    hasty_scale_in,
    over_budget,
    *LIMITS,
)
