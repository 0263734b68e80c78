"""What a fixed number of replicas would have done: against the closed form of the micro-batch model."""

import pytest

from penstock.domain.application import Application, Operator, Sink, Source, Stream, pipeline
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.live.fixed_replicas import Moved, Station, models_of, replicas_at, through, would_have_done
from penstock.live.record import Interval, Summary
from penstock.live.tally import Tally
from penstock.perf.micro_batch import MicroBatches
from penstock.reports.live_summary import beside, verdict

TYPES = (NodeType(name="standard", speedup=1.0, price=1.0),)
LOOKUP = MicroBatches(fixed_s=0.4, tuple_s=0.02)
SCORE = MicroBatches(fixed_s=0.2, tuple_s=0.004)
APART = [
    Station(operators=(name,), fixed_s=model.fixed_s, tuple_s={name: model.tuple_s})
    for name, model in (("lookup", LOOKUP), ("score", SCORE))
]


def graph(max_replicas: int = 6) -> Application:
    return pipeline(
        "lookups",
        Operator(name="lookup", service_time_s=0.02, max_replicas=max_replicas),
        Operator(name="score", service_time_s=0.004, max_replicas=max_replicas),
    )


def interval(at_s: float, rate: float, lookups: int) -> Interval:
    """As measured where batches take what the models say."""

    def operator(name: str, model: MicroBatches, replicas: int) -> OperatorObservation:
        batch_s = model.batch_s(rate, replicas)
        return OperatorObservation(
            operator=name,
            at_s=at_s,
            replicas=Replicas((replicas,)),
            arrival_rate=rate,
            response_time_s=1.5 * batch_s,
            utilisation=None,
            batch_s=batch_s,
            batch_tuples=rate * batch_s,
        )

    operators = (operator("lookup", LOOKUP, lookups), operator("score", SCORE, 1))
    return Interval(
        seen=ApplicationObservation(
            at_s=at_s,
            response_time_s=sum(one.response_time_s or 0.0 for one in operators),
            operators=operators,
            source_rate=rate,
        ),
        reasons=(),
        changed=(),
    )


def a_run() -> list[Interval]:
    """Two minutes at 20 tuples/s, two at 120, two at 20."""
    return [
        interval(5.0 * (number + 1), 120.0 if 24 <= number < 48 else 20.0, 4 if 24 <= number < 48 else 1)
        for number in range(72)
    ]


def told(run: list[Interval], objective_s: float) -> Summary:
    tally = Tally(objective_s=objective_s, node_types=TYPES, began_s=0.0)
    for one in run:
        tally.interval(one)
    return tally.summary(application="lookups", policy="objective", finished=True, seconds=360.0)


@pytest.mark.parametrize(("rate", "replicas"), [(20.0, 1), (40.0, 2), (120.0, 4)])
def test_batches_settle_where_the_closed_form_says(rate: float, replicas: int) -> None:
    arriving = [Moved(at, at, rate * 0.01) for at in (number * 0.01 for number in range(6000))]
    left = [one for one in through(APART[0].batches({"lookup": replicas}), arriving) if one.entered_s > 20]
    mean = sum(one.at_s - one.entered_s for one in left) / len(left)
    assert mean == pytest.approx(LOOKUP.response_time_s(rate, replicas), rel=0.02)


def test_the_models_are_those_of_the_batches() -> None:
    found = models_of(a_run(), TYPES)
    for name, model in (("lookup", LOOKUP), ("score", SCORE)):
        assert found[name].fixed_s == pytest.approx(model.fixed_s, rel=1e-6)
        assert found[name].tuple_s == pytest.approx(model.tuple_s, rel=1e-6)


def test_the_fewest_replicas_that_keep_the_path_inside_and_no_more_than_there_may_be() -> None:
    found = replicas_at(graph(), APART, 120.0, 3.0)
    # .6 s for the score; 1.5 x .4 / (1 - 2.4 / 4) = 1.5 s for the lookup with four, 3 s with three.
    assert found == {"lookup": 4, "score": 1}
    assert replicas_at(graph(2), APART, 120.0, 3.0) == {"lookup": 2, "score": 2}
    assert replicas_at(graph(), APART, 1.0, 3.0) == {"lookup": 1, "score": 1}


def test_static_peak_keeps_the_objective_and_static_mean_does_not() -> None:
    run = a_run()
    fixed = would_have_done(graph(), run, TYPES, 3.0)
    peak, mean = fixed["static peak"], fixed["static mean"]
    assert peak.replicas == {"lookup": 4, "score": 1}
    assert peak.violations_pct == 0
    assert peak.replica_seconds == pytest.approx(5 * 360)
    assert mean.replicas == {"lookup": 2, "score": 1}
    assert mean.violations_pct > 33  # from the rise until its backlog is gone
    ours = told(run, 3.0)
    share = 100 * (2 * 240 + 5 * 120) / (5 * 360)
    assert verdict(ours, 3.0, fixed) == (
        f"Kept 100 % of the intervals after the first minute inside 3 s, at {share:.0f} % of the "
        "replica-seconds of static peak."
    )
    assert verdict(ours, 2.0, {}).startswith("Kept 100 %")
    assert would_have_done(graph(), run[:0], TYPES, 3.0) == {}


def test_of_a_run_too_long_to_keep_all_of_it_is_told_which_part_it_is_of() -> None:
    """A minute of the peak, and two at 20 tuples/s: 300 + 240 replica-seconds, and 5 x 180 at static peak."""
    run = a_run()
    fixed = would_have_done(graph(), run[36:], TYPES, 3.0, is_all=False)
    peak = fixed["static peak"]
    assert (peak.part_s, peak.replica_seconds, peak.run_replica_seconds) == (180.0, 900.0, 540.0)
    summary = told(run, 3.0)
    assert summary.replica_seconds == 2 * 240 + 5 * 120
    assert verdict(summary, 3.0, fixed).endswith(
        "at 60 % of the replica-seconds of static peak over the last 3 minutes."
    )
    assert beside(summary, fixed)[1][0] == "static peak, the last 3 minutes"
    assert would_have_done(graph(), run, TYPES, 3.0)["static peak"].part_s is None


def test_a_run_that_missed_its_objective_says_so_first() -> None:
    late = told(a_run(), 1.0)
    assert verdict(late, 1.0, {}).startswith("Missed its objective: kept 0 %")


def test_operators_of_one_query_share_its_fixed_part_and_wait_for_each_other() -> None:
    """.5 s a batch, 20 ms on one of four replicas and 4 ms on one: 1.5 x .5 / (1 - 120 x .009)  never ends,
    with five replicas 1.5 x .5 / (1 - 120 x .008) = 18.75 s."""
    together = Station(operators=("lookup", "score"), fixed_s=0.5, tuple_s={"lookup": 0.02, "score": 0.004})
    five = together.batches({"lookup": 5, "score": 1})
    assert five.response_time_s(120.0, 1) == pytest.approx(18.75)
    found = replicas_at(graph(), [together], 120.0, 3.0)
    assert together.batches(found).response_time_s(120.0, 1) <= 3.0


def test_the_fixed_part_of_a_query_is_what_none_of_its_operators_worked() -> None:
    def seen(name: str, tuple_s: float) -> OperatorObservation:
        return OperatorObservation(
            operator=name,
            at_s=5.0,
            replicas=Replicas((1,)),
            arrival_rate=20.0,
            response_time_s=1.5,
            utilisation=None,
            service_time_s=tuple_s,
            batch_s=0.5 + 20 * 0.024,
            batch_tuples=20.0,
        )

    both = (seen("lookup", 0.02), seen("score", 0.004))
    run = [
        Interval(
            seen=ApplicationObservation(
                at_s=5.0 * number, response_time_s=1.5, operators=both, source_rate=20.0
            ),
            reasons=(),
            changed=(),
        )
        for number in range(1, 20)
    ]
    fixed = would_have_done(graph(), run, TYPES, 5.0, (("lookup", "score"),))
    assert fixed["static peak"].replicas == {"lookup": 1, "score": 1}
    # The load of an interval comes in five parts: 20 tuples at a time, done before the next ones come.
    assert fixed["static peak"].response_time_p50_s == pytest.approx(0.5 + 20 * 0.024)


def steady(rate: float, trigger_s: float = 0.0, **operators: tuple[float, float]) -> list[Interval]:
    """Half a minute; per operator, its tuples for one of the source, and what it passes on of one of them.

    A tuple takes 20 ms, and a batch .1 s besides.
    """
    seen = tuple(
        OperatorObservation(
            operator=name,
            at_s=0.0,
            replicas=Replicas((1,)),
            arrival_rate=visits * rate,
            response_time_s=1.0,
            utilisation=None,
            selectivity=selectivity,
            service_time_s=0.02,
            batch_s=0.1 + 0.02 * visits * rate,
            batch_tuples=visits * rate,
            trigger_s=trigger_s,
        )
        for name, (visits, selectivity) in operators.items()
    )
    return [
        Interval(
            seen=ApplicationObservation(at_s=1.0 * at, response_time_s=1.0, operators=seen, source_rate=rate),
            reasons=(),
            changed=(),
        )
        for at in range(1, 31)
    ]


def of(*operators: str, streams: tuple[tuple[str, str], ...]) -> Application:
    return Application(
        name="made-up",
        sources=(Source(name="in"),),
        operators=tuple(Operator(name=name, service_time_s=0.02, max_replicas=9) for name in operators),
        sinks=(Sink(name="out"),),
        streams=tuple(Stream(origin=origin, target=target) for origin, target in streams),
    )


def test_behind_a_filter_there_is_less_to_do() -> None:
    graph = of("filter", "score", streams=(("in", "filter"), ("filter", "score"), ("score", "out")))
    run = steady(100.0, filter=(1.0, 0.1), score=(0.1, 1.0))
    peak = would_have_done(graph, run, TYPES, 5.0)["static peak"]
    assert peak.replicas == {"filter": 3, "score": 1}  # 2 / .75, and .2 / .75
    together = would_have_done(graph, run, TYPES, 5.0, (("filter", "score"),))["static peak"]
    assert together.replicas == {"filter": 3, "score": 1}


def test_where_streams_merge_there_is_more_to_do() -> None:
    branches = ("one", "two", "three")
    ways = [way for name in branches for way in (("in", name), (name, "join"))]
    graph = of(*branches, "join", streams=(*ways, ("join", "out")))
    run = steady(50.0, one=(1.0, 1.0), two=(1.0, 1.0), three=(1.0, 1.0), join=(3.0, 1.0))
    peak = would_have_done(graph, run, TYPES, 9.0)["static peak"]
    assert peak.replicas == {"one": 2, "two": 2, "three": 2, "join": 4}  # 1 / .75, and 3 / .75
    # A second's 50 tuples in five parts: each .2 s at work on one of two replicas, then .25 at the join.
    assert peak.response_time_p95_s is not None
    assert peak.response_time_p95_s < 1.5


def test_between_two_micro_batches_is_the_time_of_the_trigger() -> None:
    graph = of("one", streams=(("in", "one"), ("one", "out")))
    at_once = would_have_done(graph, steady(2.0, one=(1.0, 1.0)), TYPES, 9.0)["static peak"]
    assert at_once.response_time_p50_s == pytest.approx(0.1 + 0.4 * 0.02)  # a fifth of a second's two tuples
    waiting = would_have_done(graph, steady(2.0, 2.0, one=(1.0, 1.0)), TYPES, 9.0)["static peak"]
    # R = P / 2 + T, with batches of four tuples; the load comes in parts, every .2 s.
    assert waiting.response_time_p50_s == pytest.approx(1.0 + 0.18, abs=0.21)
