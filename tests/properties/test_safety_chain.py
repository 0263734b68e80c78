"""Whatever policies ask for and whatever is measured, the safety chain keeps its promises."""

from math import inf, nan

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.safety import admit
from penstock.control.safety_settings import SafetySettings, Window
from penstock.control.watch import SafetyMemory, carried_out
from penstock.domain.decision import Decision, Hold, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Migrate, Request, request_of

TYPES = (NodeType(name="c", speedup=1.0, price=1.0), NodeType(name="d", speedup=2.0, price=2.5))
NAMES = ("count", "rank")
MOST = 5

replicas = st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(any).map(Replicas)
# Mostly a good one, or hardly anything would ever be admitted and nothing tested.
metric = st.sampled_from((0.5,) * 20 + (None, nan, -1.0, 0.0, 120.0, 5000.0, inf))
careful = st.builds(
    SafetySettings,
    interval_s=st.just(30.0),
    max_replicas=st.just(dict.fromkeys(NAMES, MOST)),
    warm_up_s=st.sampled_from((0.0, 0.0, 60.0)),
    anticipating=st.booleans(),
    scale_in_window_s=st.sampled_from((0.0, 90.0)),
    max_nodes=st.sampled_from((None, 7)),
    max_cost=st.sampled_from((None, 9.0)),
    excluded=st.sampled_from(((), (Window(start_s=100.0, end_s=200.0),))),
    full_host=st.sampled_from((0.0, 0.95)),
    spare_cpu=st.booleans(),
)


@st.composite
def observations(
    draw: st.DrawFn, at_s: float, running: dict[str, Replicas], full: bool
) -> ApplicationObservation:
    return ApplicationObservation(
        at_s=at_s,
        response_time_s=draw(metric),
        operators=tuple(
            OperatorObservation(
                operator=name,
                at_s=at_s - draw(st.sampled_from((0.0,) * 6 + (91.0,))),
                replicas=running[name],
                arrival_rate=draw(metric),
                response_time_s=draw(metric),
                utilisation=draw(metric),
                backlog=draw(metric),
                skew=draw(metric),
                computing=draw(st.sampled_from((0.9, None, nan, 0.1))),
            )
            for name in NAMES
        ),
        reconfiguring=draw(st.sampled_from(((), (), (), ("rank",)))),
        host_loads={"a": draw(st.sampled_from((0.96, 1.0) if full else (0.96, 0.3, nan)))},
    )


def _measured(value: float | None, *, infinite: bool) -> bool:
    return value is not None and value >= 0 and (infinite or value < inf)


def _price(of: Replicas) -> float:
    return sum(count * kind.price for count, kind in zip(of.counts, TYPES, strict=True))


@settings(max_examples=120, deadline=None)
@given(careful=careful, data=st.data())
def test_what_is_admitted_was_measured_is_within_bounds_and_caps_and_every_no_has_its_reason(
    careful: SafetySettings, data: st.DataObject
) -> None:
    memory = SafetyMemory()
    running = {name: data.draw(replicas) for name in NAMES}
    at_s, began_s, rounds = 0.0, 0.0, 0
    full = data.draw(st.booleans())
    changed_s = dict.fromkeys(NAMES, 0.0)
    waits = dict.fromkeys(NAMES, False)  # or may be known to, by what was ever seen
    for _ in range(data.draw(st.integers(1, 8))):
        at_s, rounds = at_s + data.draw(st.sampled_from((30.0, 30.0, 60.0))), rounds + 1
        began_s = at_s if rounds == 1 else began_s
        seen = data.draw(observations(at_s, running, full))
        waits = {one.operator: waits[one.operator] or one.computing == 0.1 for one in seen.operators}
        decisions: dict[str, Decision] = {}
        asked: list[Request] = []
        for name in NAMES:
            target = data.draw(replicas)
            decisions[name] = Hold("no")
            if target != running[name]:
                decisions[name] = scale = Scale(target=target, score=0.5, reason="wanted")
                asked.append(request_of(name, running[name], scale))
        made, memory = admit(careful, TYPES, memory, asked, decisions, seen)
        memory = carried_out(memory, made.granted, seen)

        answered = {request.operator for request in made.granted} | {
            no.request.operator for no in made.vetoes
        }
        assert answered == {request.operator for request in asked}
        assert all(no.reason for no in made.vetoes)
        operators = [request.operator for request in made.granted]
        assert len(set(operators)) == len(operators)
        before = dict(running)
        for request in made.granted:
            assert not isinstance(request, Migrate)
            (one,) = (o for o in seen.operators if o.operator == request.operator)
            assert _measured(one.arrival_rate, infinite=False)
            assert _measured(one.response_time_s, infinite=True)
            assert _measured(one.utilisation, infinite=False)
            assert at_s - one.at_s <= 90.0
            assert request.operator not in seen.reconfiguring
            assert not any(window.contains(at_s) for window in careful.excluded)
            now = running[request.operator]
            assert 1 <= request.target.total <= max(MOST, now.total - 1)
            adds = request.target.total > now.total
            assert not (adds and careful.full_host and full and rounds > 2) or waits[request.operator]
            assert at_s - began_s >= careful.warm_up_s
            early = rounds > 1 and at_s - changed_s[request.operator] < careful.warm_up_s
            assert not early or careful.anticipating
            changed_s[request.operator] = at_s
            wanted = next(r for r in asked if r.operator == request.operator)
            assert isinstance(request, type(wanted))
            running[request.operator] = request.target
        grew = sum(r.total for r in running.values()) > sum(r.total for r in before.values())
        assert not (grew and careful.max_nodes) or sum(r.total for r in running.values()) <= 7
        dearer = sum(map(_price, running.values())) > sum(map(_price, before.values()))
        assert not (dearer and careful.max_cost) or sum(map(_price, running.values())) <= 9.0 + 1e-9
