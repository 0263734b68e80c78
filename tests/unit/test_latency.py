"""Response time over the graph: longest path, limits per path, equal shares."""

from math import inf

import numpy as np
import pytest

from penstock.apps.registry import application_entry
from penstock.domain.application import Application, Operator, Sink, Source, Stream, pipeline
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.perf.latency import (
    check_objective,
    end_to_end,
    equal_shares,
    naive_shares,
    path_times,
    violated,
)


def graph(edges: str, *, operators: str, sinks: str = "out") -> Application:
    ends = [edge.split("->") for edge in edges.split()]
    return Application(
        name="app",
        sources=(Source(name="in"),),
        operators=tuple(Operator(name=name, service_time_s=0.001) for name in operators.split()),
        sinks=tuple(Sink(name=name) for name in sinks.split()),
        streams=tuple(Stream(origin=origin, target=target) for origin, target in ends),
    )


# Two branches of different length, joined again:  s -> l -> j  and  s -> r1 -> r2 -> j
DIAMOND = graph("in->s s->l s->r1 r1->r2 l->j r2->j j->out", operators="s l r1 r2 j")
SHORT, LONG = ("s", "l", "j"), ("s", "r1", "r2", "j")

# One operator feeds a dashboard at once and an archive after two more
FORK = graph("in->a a->o1 a->b b->c c->o2", operators="a b c", sinks="o1 o2")


def slots(**times_ms: list[float]) -> dict[str, np.ndarray]:
    return {name: np.array(values) / 1000 for name, values in times_ms.items()}


def test_the_time_of_a_path_is_the_sum_of_its_operators_slot_by_slot() -> None:
    times = path_times(DIAMOND, slots(s=[1, 2], l=[10, 20], r1=[3, 3], r2=[4, 5], j=[1, 1]))
    assert set(times) == {SHORT, LONG}
    np.testing.assert_allclose(times[SHORT], [0.012, 0.023], rtol=1e-12)
    np.testing.assert_allclose(times[LONG], [0.009, 0.011], rtol=1e-12)


def test_a_diamond_is_as_slow_as_its_slower_branch_in_each_slot() -> None:
    # the branches swap places: 10 against 3 + 4, then 5 against 6 + 6
    times = end_to_end(DIAMOND, slots(s=[1, 1], l=[10, 5], r1=[3, 6], r2=[4, 6], j=[2, 2]))
    np.testing.assert_allclose(times, [0.013, 0.015], rtol=1e-12)


def test_an_application_of_two_sinks_is_judged_by_the_later_one() -> None:
    times = end_to_end(FORK, slots(a=[7, 7], b=[1, 0.5], c=[2, 0.5]))
    np.testing.assert_allclose(times, [0.010, 0.008], rtol=1e-12)


def test_a_pipeline_takes_the_sum_of_its_operators() -> None:
    app = pipeline("p", *(Operator(name=name, service_time_s=0.001) for name in "abc"))
    np.testing.assert_allclose(end_to_end(app, slots(a=[1, 10], b=[2, 20], c=[3, 30])), [0.006, 0.060])


def test_a_saturated_operator_makes_every_path_through_it_infinite_and_no_other() -> None:
    operator_times = slots(s=[1], l=[inf], r1=[1], r2=[1], j=[1])
    times = path_times(DIAMOND, operator_times)
    assert times[SHORT].tolist() == [inf]
    np.testing.assert_allclose(times[LONG], [0.004], rtol=1e-12)
    assert end_to_end(DIAMOND, operator_times).tolist() == [inf]
    assert violated(DIAMOND, Objective(response_time_s=1e6), operator_times).tolist() == [True]


def test_a_limit_that_is_met_exactly_is_not_violated() -> None:
    # published simulator, 2.1: a violation if latency > SLO (strict)
    app = pipeline("p", Operator(name="a", service_time_s=0.001))
    times = {"a": np.array([0.25, np.nextafter(0.25, 1), 0.125])}
    assert violated(app, Objective(response_time_s=0.25), times).tolist() == [False, True, False]


def test_every_path_is_held_to_its_own_limit() -> None:
    # the dashboard path (a) may take 5 ms, the archive path (a, b, c) 20 ms
    objective = Objective(response_time_s=0.020, per_path_s={("a",): 0.005})
    #                         ok   dashboard late  archive late  both
    times = slots(a=[4, 6, 4, 6], b=[8, 1, 8, 8], c=[7, 1, 9, 8])
    assert violated(FORK, objective, times).tolist() == [False, True, True, True]
    # without the limit of its own the second slot is fine: 8 ms at most
    assert violated(FORK, Objective(response_time_s=0.020), times).tolist() == [False, False, True, True]


def test_a_looser_limit_of_one_path_lets_that_path_be_the_longest() -> None:
    objective = Objective(response_time_s=0.010, per_path_s={LONG: 0.030})
    times = slots(s=[1], l=[2], r1=[10], r2=[10], j=[1])
    assert violated(DIAMOND, objective, times).tolist() == [False]


def algorithm_5(application: Application, limits: dict[tuple[str, ...], float]) -> dict[str, float]:
    """Russo 2023, Algorithm 5, lines 1-4, as printed."""
    rho = {operator.name: inf for operator in application.operators}  # 1
    for path, limit in limits.items():  # 2
        for u in path:
            rho[u] = min(limit / len(path), rho[u])  # 3
    return rho


def test_operators_of_a_pipeline_share_the_limit_equally() -> None:
    app = pipeline("p", *(Operator(name=name, service_time_s=0.001) for name in "abcd"))
    assert equal_shares(app, Objective(response_time_s=0.050)) == pytest.approx(dict.fromkeys("abcd", 0.0125))


def test_an_operator_on_two_paths_gets_the_smaller_share() -> None:
    # 60 ms over 4 operators is 15 ms, over 3 it is 20 ms: only l is on the short path alone
    shares = equal_shares(DIAMOND, Objective(response_time_s=0.060))
    assert shares == pytest.approx({"s": 0.015, "l": 0.020, "r1": 0.015, "r2": 0.015, "j": 0.015})
    assert shares == pytest.approx(algorithm_5(DIAMOND, {SHORT: 0.060, LONG: 0.060}))


def test_a_tight_limit_of_a_short_path_outweighs_its_length() -> None:
    # 12 ms over 3 operators is 4 ms, tighter than 60 ms over 4
    objective = Objective(response_time_s=0.060, per_path_s={SHORT: 0.012})
    shares = equal_shares(DIAMOND, objective)
    assert shares == pytest.approx({"s": 0.004, "l": 0.004, "r1": 0.015, "r2": 0.015, "j": 0.004})
    assert shares == pytest.approx(algorithm_5(DIAMOND, {SHORT: 0.012, LONG: 0.060}))


def test_shares_of_two_sinks_follow_the_longer_way_unless_the_short_one_is_tighter() -> None:
    even = equal_shares(FORK, Objective(response_time_s=0.030))
    assert even == pytest.approx({"a": 0.010, "b": 0.010, "c": 0.010})
    tight = equal_shares(FORK, Objective(response_time_s=0.030, per_path_s={("a",): 0.005}))
    assert tight == pytest.approx({"a": 0.005, "b": 0.010, "c": 0.010})


def test_keeping_to_the_shares_keeps_every_path_within_its_limit() -> None:
    objective = Objective(response_time_s=0.060, per_path_s={SHORT: 0.012})
    kept = {name: np.array([share * (1 - 1e-12)]) for name, share in equal_shares(DIAMOND, objective).items()}
    assert violated(DIAMOND, objective, kept).tolist() == [False]


def test_spare_latency_goes_to_the_operators_no_other_path_holds_back() -> None:
    # Application C, 30 ms: 10 ms each on the two long paths, which are used up. The short
    # path (root, short) has 10 + 15; root cannot grow, so short takes the 5 ms to spare.
    shares = naive_shares(application_entry("multi-sink").graph(10), Objective(response_time_s=0.030))
    expected = {"root": 0.010, "inner": 0.010, "left": 0.010, "right": 0.010, "short": 0.020}
    assert shares == pytest.approx(expected)


def test_spare_latency_is_shared_in_proportion_to_what_each_has() -> None:
    # s, l, j of the short path have 4 ms each (12 ms in all); s and j leave 60 - 8 = 52 ms of
    # the long path for r1 and r2, which have 15 ms each and may grow to 26.
    objective = Objective(response_time_s=0.060, per_path_s={SHORT: 0.012})
    shares = naive_shares(DIAMOND, objective)
    assert shares == pytest.approx({"s": 0.004, "l": 0.004, "r1": 0.026, "r2": 0.026, "j": 0.004})
    # unequal allocations: a has 2 ms of a tight path of its own, b (10) and c (10) share 26
    tight = naive_shares(FORK, Objective(response_time_s=0.030, per_path_s={("a",): 0.002}))
    assert tight == pytest.approx({"a": 0.002, "b": 0.014, "c": 0.014})


def test_without_spare_latency_naive_shares_are_equal_shares() -> None:
    app = pipeline("p", *(Operator(name=name, service_time_s=0.001) for name in "abc"))
    objective = Objective(response_time_s=0.050)
    assert naive_shares(app, objective) == pytest.approx(equal_shares(app, objective))


@pytest.mark.parametrize("limit_ms", [3.0, 12.0, 45.0, 60.0, 300.0])
def test_no_path_exceeds_its_limit_and_nobody_loses_by_redistribution(limit_ms: float) -> None:
    for application, path in ((DIAMOND, SHORT), (DIAMOND, LONG), (FORK, ("a",))):
        objective = Objective(response_time_s=0.060, per_path_s={path: limit_ms / 1000})
        shares, before = naive_shares(application, objective), equal_shares(application, objective)
        assert all(shares[name] >= before[name] * (1 - 1e-12) for name in before)
        for each in application.paths:
            assert sum(shares[name] for name in each) <= objective.for_path(each) * (1 + 1e-12)
        # whoever could still grow would be on used-up paths only: everyone is on one
        for name in shares:
            assert any(
                sum(shares[other] for other in each) == pytest.approx(objective.for_path(each))
                for each in application.paths
                if name in each
            )


def test_a_path_that_has_no_limit_is_named() -> None:
    with pytest.raises(InputError, match=r"^objective: path s-r1-r2-j has none"):
        check_objective(DIAMOND, Objective(response_time_s=None, per_path_s={SHORT: 0.05}))


def test_a_limit_of_a_path_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="no path s-j; it has s-l-j, s-r1-r2-j"):
        check_objective(DIAMOND, Objective(response_time_s=0.05, per_path_s={("s", "j"): 0.05}))


@pytest.mark.parametrize(
    ("limit_ms", "fastest", "delay_ms", "refused"),
    [
        (4.1, 1.0, 0.0, False),
        (4.0, 1.0, 0.0, True),  # four services of a millisecond on the longer branch
        (4.0, 1.3, 0.0, False),
        (2.0, 1.3, 0.0, True),
        (4.0, 1.3, 1.0, True),
    ],
)
def test_an_objective_faster_than_service_on_the_fastest_node_is_refused(
    limit_ms: float, fastest: float, delay_ms: float, refused: bool
) -> None:
    objective = Objective(response_time_s=limit_ms / 1000)

    def check() -> None:
        check_objective(DIAMOND, objective, fastest=fastest, delays_s={"r2": delay_ms / 1000})

    if refused:
        with pytest.raises(InputError, match="every interval would violate"):
            check()
    else:
        check()


def test_what_is_infeasible_says_which_path_by_how_much() -> None:
    objective = Objective(response_time_s=0.05, per_path_s={LONG: 0.003})
    with pytest.raises(InputError) as problem:
        check_objective(DIAMOND, objective, fastest=1.25)
    assert str(problem.value) == (
        "application 'app': path s-r1-r2-j takes 3.2 ms of service alone on the fastest node (speedup 1.25), "
        "which is not below its objective of 3 ms: every interval would violate"
    )
