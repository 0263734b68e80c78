"""The figures of Russo 2023: what is run, what is drawn, and how each sentence of the paper is judged."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from penstock.control.spec import Manager
from penstock.papers import taas_figures_costs as costs
from penstock.papers import taas_figures_networks as networks
from penstock.papers import taas_figures_time as over_time
from penstock.papers.adaptive import CHANGES
from penstock.papers.claims import Chart, Claim, Progress, Traces
from penstock.papers.reproductions import REPRODUCTIONS
from penstock.papers.taas_figure import (
    DEEP,
    LEARNERS,
    Effort,
    Figure,
    Mean,
    Measured,
    Point,
    bars,
    findings,
    in_cells,
    jobs_of,
    marks_of,
    mean_of,
    measured,
)
from penstock.papers.taas_figures import FIGURES
from penstock.simulation.play import run
from penstock.simulation.spec import OneOperator

RATES = 300 + 200 * np.sin(np.arange(600) / 40)
TRACES = Traces(taxi=RATES, taxi_last_month=RATES, tweets=5 * RATES)
SMALL = Effort(slots=400, seeds=2, deep_seeds=1, network_seeds=2, change_at=150, again_from=300)


def costing(cost: float, *, violations_pct: float = 0.0, reconfigurations_pct: float = 0.0) -> Mean:
    return Mean(cost, violations_pct, reconfigurations_pct, 1.0, (cost,))


def with_column(mean: Mean, column: str, value: float) -> Mean:
    match column:
        case "cost":
            return mean._replace(cost=value)
        case "violations_pct":
            return mean._replace(violations_pct=value)
        case "reconfigurations_pct":
            return mean._replace(reconfigurations_pct=value)
    raise ValueError(column)


def by_id(claims: Sequence[Claim]) -> dict[str, Claim]:
    found = {claim.id: claim for claim in claims}
    assert len(found) == len(claims)
    return found


def names(chart: Chart) -> list[str]:
    return [series.name for series in chart.series]


# What is run


@pytest.mark.parametrize("number", [12, 16, 17, 23, 24, 25])
def test_deep_policies_the_planner_and_ours_are_in_every_figure_with_few_deep_seeds(number: int) -> None:
    jobs = FIGURES[number](TRACES, SMALL).jobs
    policies = {point.policy for point in jobs}
    assert {*DEEP, "vi", "adaptive"} <= policies
    seeds = {point.policy: [job[0].seed for job in of] for point, of in jobs.items()}
    assert all(seeds[policy] == [1] for policy in (*DEEP, "vi"))
    assert seeds["ql-pds-plus"] == [1, 2]
    assert all(spec.as_published for of in jobs.values() for spec, _, _ in of)


def test_figure_16_has_every_baseline_on_every_infrastructure() -> None:
    points = costs.figure_16(TRACES, SMALL).jobs.keys()
    assert {point.where for point in points} == {f"{f}:{n}" for f in ("A", "B", "B2") for n in (1, 3, 6, 10)}
    baselines = {"threshold-c", "threshold-s", "threshold-0", "drs-c", "drs-s", "drs-0", "lohrmann-c"}
    baselines |= {"lohrmann-s", "lohrmann-0", "heinze-c", "heinze-s"}
    assert {*baselines, *LEARNERS} <= {point.policy for point in points}


def test_figure_17_has_20_replicas_both_traces_and_no_plan_for_30_million_deployments() -> None:
    jobs = costs.figure_17(TRACES, SMALL).jobs
    assert len({point.where for point in jobs}) == 12
    assert all(spec.max_replicas == 20 for of in jobs.values() for spec, _, _ in of)
    assert all(
        (rates.max() > 1000) == point.where.startswith("tweets")
        for point, ((_, rates, _), *_) in jobs.items()
    )
    planned = {point.where for point in jobs if point.policy == "vi"}
    assert planned == {f"{trace} {f}:{n}" for trace in ("taxi", "tweets") for f in "AB" for n in (3, 6)}


def test_the_load_doubles_where_the_published_experiment_doubles_it() -> None:
    taxi = np.arange(525_533, dtype=float)
    assert np.array_equal(over_time.doubling(taxi, Effort()), CHANGES[0].rates(taxi))
    figure = over_time.figure_24(TRACES, SMALL)
    highest = figure.jobs[Point("A:3, levels up to the highest rate", "ql")][0]
    usual = figure.jobs[Point("A:3", "ql")][0]
    assert usual[1].size == 150 + 300
    assert usual[1][150] == 2 * RATES[300]
    assert (usual[0].max_rate, highest[0].max_rate) == (650.0, usual[1].max())


def test_prices_of_all_types_but_the_last_rise_100_times_at_the_change() -> None:
    (spec, rates, _), *_ = over_time.figure_25(TRACES, SMALL).jobs[Point("A:3", "ql")]
    assert isinstance(spec, OneOperator)
    assert spec.price_shift is not None
    assert (spec.price_shift.slot, spec.price_shift.factor, rates.size) == (150, 100.0, 400)


def test_figure_27_tries_every_network_and_large_with_three_types_only() -> None:
    jobs = networks.figure_27(TRACES, SMALL).jobs
    tried = [of for point, of in jobs.items() if point.policy == "dql"]
    assert len(tried) == 12 + 9 + 9
    assert all(len(of) == 2 for of in tried)
    parameters = [dict(of[0][0].operator_policy.parameters) for of in tried]
    assert {(one["encoding"], one["hidden"]) for one in parameters} == {
        (name, hidden) for name in ("minimal", "large", "reduced1", "reduced2") for hidden in (1, 2, 3)
    }
    large = [
        of[0][0].infrastructure for of in tried if of[0][0].operator_policy.parameters["encoding"] == "large"
    ]
    assert large == ["A:3"] * 3


def test_long_runs_are_done_only_when_named_and_figures_one_by_one() -> None:
    wanted = {"taas-figures", *(f"taas-figure-{number}" for number in (12, 16, 17, 18, 23, 24, 25, 27))}
    assert {name for name, one in REPRODUCTIONS.items() if one.only_by_name} == {*wanted, "taas-deep"}
    assert "Figures 12, 16" in REPRODUCTIONS["taas-figures"].title
    assert REPRODUCTIONS["taas-figure-24"].title.startswith("Figure 24 of")


# Runs


def test_what_is_kept_of_runs_is_what_a_single_run_says_and_progress_counts_them() -> None:
    spec = OneOperator(operator_policy=Manager("ql"), as_published=True)
    marks = marks_of(RATES.size, 150)
    seen: list[dict[Point, Mean]] = []
    point = Point("A:3", "ql")

    def charts(results: Measured) -> list[Chart]:
        seen.append(dict(results))
        return []

    figure = Figure(
        jobs={point: jobs_of(spec, (1, 2), RATES, None)}, charts=charts, claims=lambda _: [], marks=marks
    )
    steps: list[int] = []
    findings([figure], 1, Progress(of=steps.append, advance=lambda: steps.append(-1)))
    assert steps == [3, -1, -1, -1]
    ((_, kept),) = seen[0].items()
    alone = [run(replace(spec, seed=seed), RATES, with_history=True) for seed in (1, 2)]
    assert kept.costs == tuple(one.avg_cost for one in alone)
    assert kept.cost == pytest.approx(np.mean(kept.costs))
    assert kept.violations_pct == pytest.approx(np.mean([one.violations_pct for one in alone]))
    assert kept.resources == pytest.approx(np.mean([one.resource_cost for one in alone]))
    curves = [one.history.cost for one in alone if one.history is not None]
    for mark, so_far in zip(marks, kept.so_far, strict=True):
        assert so_far == pytest.approx(np.mean([curve[:mark].mean() for curve in curves]))
    assert kept.so_far[-1] == pytest.approx(kept.cost)


def test_every_point_gets_its_own_runs() -> None:
    spec = OneOperator(operator_policy=Manager("threshold-c"), as_published=True)
    jobs = {Point("A:3", str(index)): jobs_of(spec, (1,), RATES[: 50 + index], None) for index in range(9)}
    figure = Figure(jobs=jobs, charts=lambda _: [], claims=lambda _: [], marks=marks_of(50))
    results = measured(figure, 1, Progress(of=lambda _: None, advance=lambda: None))
    assert list(results) == list(jobs)
    alone = run(spec, RATES[:58]).avg_cost
    assert results[Point("A:3", "8")].cost == pytest.approx(alone)


def test_marks_end_with_the_last_slot_and_hold_the_change() -> None:
    marks = marks_of(400_001, 123_457)
    assert (marks[0] > 0, marks[-1], 123_457 in marks) == (True, 400_001, True)
    assert marks.size == 201
    assert list(marks_of(3)) == [1, 2, 3]


def test_a_mean_of_seeds_keeps_each_cost() -> None:
    one, other = Mean(1.0, 2.0, 3.0, 4.0, (1.0,), (1.0, 1.0)), Mean(3.0, 4.0, 5.0, 6.0, (3.0,), (3.0, 5.0))
    assert mean_of([one, other]) == Mean(2.0, 3.0, 4.0, 5.0, (1.0, 3.0), (2.0, 3.0))


def test_bars_leave_a_gap_where_nothing_was_run_and_mark_what_is_ours() -> None:
    series = bars({Point("here", "adaptive"): costing(0.5)}, ["here", "there"], ["adaptive", "vi"])
    assert [one.name for one in series] == ["adaptive (ours)", "vi (DP)"]
    assert [one.y for one in series] == [[0.5, None], [None, None]]


def test_what_holds_in_all_cells_names_those_where_it_does_not() -> None:
    claim = in_cells("name", "sec. 1", "everywhere", {"a": True, "b": False}, "cost")
    assert (claim.holds, claim.shown, claim.measured) == (False, "in 1 of 2 cells", 1.0)
    assert "not b" in claim.note
    assert in_cells("name", "sec. 1", "everywhere", {"a": True}, "cost").holds is True


# Figure 12


def weighted(change: Callable[[str, Mean], Mean]) -> dict[Point, Mean]:
    labels = [costs.weights_label(weights) for weights in costs.WEIGHTS]
    return {Point(where, policy): change(where, costing(0.1)) for where in labels for policy in costs.TUNED}


def test_weights_that_are_best_in_all_metrics_are_no_trade_off() -> None:
    frugal = costs.weights_label(costs.WEIGHTS[3])
    same = costs.claims_12(weighted(lambda where, mean: mean))
    assert [claim.holds for claim in same] == [False, None, None, None, None, None]
    better = costs.claims_12(
        weighted(lambda where, mean: mean._replace(resources=0.5) if where == frugal else mean)
    )
    assert [claim.holds for claim in better] == [False, None, None, None, None, None]
    traded = costs.claims_12(
        weighted(
            lambda where, mean: mean._replace(resources=0.5, violations_pct=9.0) if where == frugal else mean
        )
    )
    assert [claim.holds for claim in traded] == [True, None, None, None, None, None]
    assert {claim.shown for claim in traded if claim.source != "ours"} == {"a different trade-off"}
    assert sum(claim.source == "ours" for claim in traded) == 1


def test_figure_12_draws_each_metric_by_weights() -> None:
    results = weighted(lambda where, mean: Mean(0.1, 2.0, 3.0, 4.0))
    charts = costs.charts_12(results)
    assert [chart.series[0].y[0] for chart in charts] == [4.0, 2.0, 3.0]
    assert all(len(chart.series) == len(costs.TUNED) for chart in charts)
    assert charts[0].series[0].x[0] == "0.6 / 0.2 / 0.2"


# Figure 16


def as_the_text_has_it() -> dict[Point, Mean]:
    results = {
        Point(f"{family}:{types}", policy): costing(0.1)
        for family in costs.FAMILIES
        for types in costs.TYPES
        for policy in costs.COMPARED
    }
    for where in [point.where for point in results if point.policy == "ql"]:
        if where.startswith("A"):
            for policy in ("heinze-c", "lohrmann-c"):
                results[Point(where, policy)] = costing(0.13)
        else:
            results[Point(where, "ql-pds")] = costing(0.05)
            results[Point(where, "threshold-c")] = costing(0.6, violations_pct=100.0)
    return results


def test_the_claims_of_figure_16_hold_where_things_are_as_the_text_says() -> None:
    claims = costs.claims_16(as_the_text_has_it())
    assert len(claims) == 1 + 6 + 9
    assert all(claim.holds for claim in claims)


@pytest.mark.parametrize(
    ("where", "policy", "mean", "failing", "shown"),
    [
        ("B:6", "threshold-s", costing(0.04), "figure-16/B:6/lowest average cost", "threshold-s"),
        ("B2:3", "drs-0", costing(0.04), "figure-16/B2:3/lowest average cost", "drs-0"),
        (
            "B:3",
            "threshold-s",
            costing(0.1, violations_pct=6.0),
            "figure-16/B:3/Thr-S violations (%)",
            "not acceptable",
        ),
        (
            "B:10",
            "threshold-c",
            costing(0.6, violations_pct=9.0),
            "figure-16/B:10/Thr-C violations (%)",
            "does not",
        ),
        (
            "A:3",
            "drs-c",
            costing(0.9),
            "figure-16/A/baselines with higher costs",
            "drs-c, lohrmann-c, heinze-c",
        ),
    ],
)
def test_each_claim_of_figure_16_fails_when_its_policy_does_otherwise(
    where: str, policy: str, mean: Mean, failing: str, shown: str
) -> None:
    claims = by_id(costs.claims_16({**as_the_text_has_it(), Point(where, policy): mean}))
    assert [name for name, claim in claims.items() if not claim.holds] == [failing]
    assert claims[failing].shown == shown


def test_heinze_or_lohrmann_below_ql_pds_is_told() -> None:
    claims = by_id(costs.claims_16({**as_the_text_has_it(), Point("B:3", "lohrmann-s"): costing(0.01)}))
    assert claims["figure-16/B:3/Heinze and Lohrmann"].shown == "not lohrmann-s"
    assert claims["figure-16/B:3/lowest average cost"].holds is False


def test_figure_16_has_a_chart_per_infrastructure_with_every_policy() -> None:
    charts = costs.charts_16(as_the_text_has_it())
    assert [chart.title[-2:].strip() for chart in charts] == ["A", "B", "B2"]
    assert charts[1].series[0].x == ["B:1", "B:3", "B:6", "B:10"]
    assert {"ql-pds", "dql-pds-plus", "vi (DP)", "adaptive (ours)", "heinze-s"} <= set(names(charts[0]))


# Figure 17


def learners_as_the_text_has_them() -> dict[Point, Mean]:
    in_both = {"ql": 0.3, "ql-pds-plus": 0.05, "ql-fa": 0.2, "dql": 0.25, "dql-pds-plus": 0.06, "vi": 0.01}
    in_both["adaptive"] = 0.01
    found = {}
    for trace in ("taxi", "tweets"):
        for types in (3, 6, 10):
            for family, own in (
                ("A", {"ql-pds": 0.1, "dql-pds": 0.1}),
                ("B", {"ql-pds": 0.5, "dql-pds": 0.4}),
            ):
                for policy, cost in {**in_both, **own}.items():
                    rcf = 50.0 if policy == "ql" else 0.5
                    found[Point(f"{trace} {family}:{types}", policy)] = costing(
                        cost, violations_pct=0.2, reconfigurations_pct=rcf
                    )
    return found


def test_the_claims_of_figure_17_hold_where_things_are_as_the_text_says() -> None:
    claims = costs.claims_17(learners_as_the_text_has_them())
    assert {claim.id for claim in claims if not claim.holds} == {
        "figure-17/B/QL+FA violations (%), at most",
        "figure-17/B/DQL violations (%), at most",
        "figure-17/adaptive over the cheapest learner of the paper",
    }
    assert all(claim.holds is not False for claim in claims)


@pytest.mark.parametrize(
    ("where", "policy", "column", "value", "failing"),
    [
        (
            "taxi A:3",
            "ql",
            "reconfigurations_pct",
            0.4,
            "QL reconfigures more than the other tabular learners",
        ),
        ("taxi A:3", "ql-pds", "cost", 0.4, "A/QL+PDS costs less than QL"),
        ("tweets A:6", "ql-pds", "violations_pct", 0.5, "A/QL+PDS violations (%)"),
        ("tweets A:6", "ql-pds", "reconfigurations_pct", 4.0, "A/QL+PDS reconfigurations (%)"),
        ("tweets B:3", "ql-pds", "cost", 0.1, "B/QL costs less than QL+PDS"),
        ("taxi B:10", "ql-pds-plus", "cost", 0.31, "QL+PDS+ is the cheapest tabular learner"),
        ("taxi B:10", "dql", "cost", 0.31, "DQL costs less than QL"),
        ("taxi A:10", "dql", "violations_pct", 1.1, "A/DQL violations (%)"),
        ("taxi A:10", "dql-pds", "cost", 0.26, "A/DQL+PDS costs less than DQL"),
        ("taxi B:10", "dql-pds-plus", "cost", 0.41, "B/DQL+PDS+ costs less than DQL+PDS"),
    ],
)
def test_each_claim_of_figure_17_fails_when_a_cell_says_otherwise(
    where: str, policy: str, column: str, value: float, failing: str
) -> None:
    results = learners_as_the_text_has_them()
    point = Point(where, policy)
    results[point] = with_column(results[point], column, value)
    assert [claim.id for claim in costs.claims_17(results) if claim.holds is False] == [
        f"figure-17/{failing}"
    ]


def test_dql_pds_may_violate_much_in_few_cells_only() -> None:
    results = learners_as_the_text_has_them()
    name = "figure-17/DQL+PDS violations below 5 %"
    for count, point in enumerate([point for point in results if point.policy == "dql-pds"], start=1):
        results[point] = results[point]._replace(violations_pct=20.0)
        assert by_id(costs.claims_17(results))[name].holds is (count <= 3)


def test_figure_17_has_a_chart_per_trace_and_infrastructure() -> None:
    results = learners_as_the_text_has_them()
    del results[Point("taxi A:10", "vi")]
    charts = costs.charts_17(results)
    assert [chart.series[0].x for chart in charts[:2]] == [
        ["taxi A:3", "taxi A:6", "taxi A:10"],
        ["taxi B:3", "taxi B:6", "taxi B:10"],
    ]
    assert len(charts) == 4
    assert names(charts[0]) == [*LEARNERS, "vi (DP)", "adaptive (ours)"]
    assert charts[0].series[-2].y == [0.01, 0.01, None]


# Figure 18


@pytest.fixture(scope="module")
def memories() -> networks.Memories:
    return {policy: networks.bytes_by_types(policy, RATES, 3) for policy in networks.REMEMBERING}


def test_tables_take_a_value_for_every_state_and_networks_their_weights(memories: networks.Memories) -> None:
    """States by Russo 2023: 8550 with three types and ten replicas; neurons 60-45-34-26."""
    inner = 61 * 45 + 46 * 34 + 35 * 26
    assert memories["ql-pds"][2].full == 8 * 8550
    assert memories["ql"][2].full == 8 * 8550 * 7
    assert memories["ql-fa"][2].full == 8 * (2 * 11 * 15 * 8 + 2 + 12)
    assert memories["dql"][2].full == 8 * (inner + 27 * 7)
    assert memories["dql-pds"][2].full == 8 * (inner + 27)
    assert all(one.full == one.allocated for sizes in memories.values() for one in sizes)


def sizes_of(**full: tuple[int, ...]) -> networks.Memories:
    return {
        policy.replace("_", "-"): [networks.ValueBytes(one, one) for one in of] for policy, of in full.items()
    }


def test_the_claims_of_figure_18_follow_from_the_sizes() -> None:
    small = (10, 20, 30)
    as_said = sizes_of(
        ql=(1000, 10**6, 10**9),
        ql_pds=(1000, 10**5, 44 * 10**6),
        ql_fa=small,
        dql=small,
        dql_pds=small,
        adaptive=small,
    )
    claims = networks.claims_18(as_said)
    assert [claim.holds for claim in claims] == [True, True, True, None, None, None]
    otherwise = sizes_of(
        ql=(1000, 1000, 1000),
        ql_pds=(1000, 1000, 1000),
        ql_fa=(900, 900, 900),
        dql=small,
        dql_pds=small,
        adaptive=small,
    )
    assert [claim.holds for claim in networks.claims_18(otherwise)[:3]] == [False, False, False]
    assert networks.claims_18(otherwise)[1].shown == "kilobytes"


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (44.3e6, "tens of megabytes"),
        (9e6, "megabytes"),
        (931e6, "hundreds of megabytes"),
        (2e10, "tens of gigabytes"),
    ],
)
def test_sizes_in_words(size: float, words: str) -> None:
    assert networks.magnitude(size) == words


def test_what_is_hashed_has_a_line_of_its_own() -> None:
    one = networks.ValueBytes(2_000_000, 1_000_000)
    (chart,) = networks.charts_18({"ql": [one], "dql": [networks.ValueBytes(5, 5)], "adaptive": [one]})
    assert names(chart)[:3] == ["ql", "dql", "adaptive (ours)"]
    hashed = next(series for series in chart.series if series.name == "ql, as allocated here")
    assert (hashed.y, hashed.group) == ([1.0], chart.series[0].group)
    assert "dql, as allocated here" not in names(chart)


# Figures 23 to 25


def ends(**cost: float) -> dict[Point, Mean]:
    usual = {"vi": 1.0, "adaptive": 1.0, "ql": 6.0, "ql-pds": 2.5, "ql-pds-plus": 2.4, "ql-fa": 1.4}
    usual |= {"dql": 3.0, "dql-pds": 1.8, "dql-pds-plus": 1.5}
    usual |= {policy.replace("_", "-"): value for policy, value in cost.items()}
    return {
        Point(where, policy): costing(value) for where in ("A:3", "B:3") for policy, value in usual.items()
    }


def test_the_claims_of_figure_23_hold_in_a_and_are_only_shown_in_b() -> None:
    claims = over_time.claims_23(ends())
    assert [claim.holds for claim in claims] == [True, True, True, True, None, *[None] * 5]


@pytest.mark.parametrize(
    ("otherwise", "failing"),
    [
        ({"ql": 1.9, "ql_pds": 1.8, "ql_pds_plus": 1.6, "dql": 2.0}, {0, 2}),
        ({"ql_pds": 6.1}, {1}),
        ({"ql_fa": 6.1, "dql": 6.1}, {2, 3}),
        ({"dql_pds": 2.2}, {3}),
        ({"dql": 1.9}, {3}),
    ],
)
def test_each_claim_of_figure_23_fails_when_costs_are_otherwise(
    otherwise: dict[str, float], failing: set[int]
) -> None:
    claims = over_time.claims_23(ends(**otherwise))
    assert {index for index, claim in enumerate(claims) if claim.holds is False} == failing


def test_means_before_and_after_a_change_come_from_the_curve() -> None:
    slots = np.concatenate([np.full(150, 1.0), np.full(50, 3.0)])
    marks = marks_of(200, 150)
    so_far = tuple(float(slots[:mark].mean()) for mark in marks)
    assert over_time.halves(so_far, marks, 150) == pytest.approx((1.0, 3.0, 1.5))


def changed(**halves: tuple[float, float]) -> dict[str, over_time.Halves]:
    given = {policy.replace("_", "-"): pair for policy, pair in halves.items()}
    pairs = {policy: given.get(policy, (0.2, 0.3)) for policy in over_time.CHANGING}
    return {policy: over_time.Halves(a, b, (a + b) / 2) for policy, (a, b) in pairs.items()}


CLAIMED, SHOWN = over_time.LOADS[0], over_time.LOADS[2]


@pytest.mark.parametrize(
    ("costs_then", "holds"),
    [
        (changed(vi=(0.1, 0.9)), [True, True, True]),
        (changed(vi=(0.1, 0.9), threshold_c=(0.05, 0.3)), [False, True, True]),
        (changed(vi=(0.1, 0.9), ql=(0.8, 0.8)), [True, False, True]),
        (changed(vi=(0.1, 0.9), dql=(0.2, 0.95)), [True, False, False]),
        (changed(vi=(0.1, 0.9), adaptive=(0.01, 0.99)), [True, True, True]),  # ours is not the paper's
    ],
)
def test_the_claims_of_figure_24(costs_then: dict[str, over_time.Halves], holds: list[bool]) -> None:
    claims = over_time.claims_24(CLAIMED, costs_then)
    assert [claim.holds for claim in claims] == [*holds, None]
    assert {claim.holds for claim in over_time.claims_24(SHOWN, costs_then)} == {None}


@pytest.mark.parametrize(
    ("costs_then", "holds"),
    [
        (changed(vi=(0.1, 0.9), threshold_c=(0.1, 0.9), threshold_s=(0.1, 0.7)), [True, True, True, True]),
        (changed(vi=(0.1, 0.5), threshold_c=(0.1, 0.9), threshold_s=(0.1, 0.7)), [False, True, True, True]),
        (changed(vi=(0.1, 0.9), threshold_c=(0.1, 0.9), threshold_s=(0.1, 0.2)), [True, True, False, False]),
        (
            changed(vi=(0.1, 0.9), threshold_c=(0.1, 0.9), threshold_s=(0.1, 0.7), ql=(0.2, 0.8)),
            [True, True, True, False],
        ),
    ],
)
def test_the_claims_of_figure_25(costs_then: dict[str, over_time.Halves], holds: list[bool]) -> None:
    claims = over_time.claims_25(CLAIMED, costs_then)
    assert [claim.holds for claim in claims] == [*holds, None]
    assert claims[-1].source == "ours"


def test_figures_over_time_have_a_line_for_every_policy() -> None:
    for number, places in ((23, 4), (24, 3), (25, 2)):
        figure = FIGURES[number](TRACES, SMALL)
        curve = tuple(float(mark) for mark in figure.marks)
        results = {point: costing(1.0)._replace(so_far=curve) for point in figure.jobs}
        charts = figure.charts(results)
        assert len(charts) == places
        drawn = {name for chart in charts for name in names(chart)}
        assert {*LEARNERS, "vi (DP)", "adaptive (ours)"} <= drawn
        assert all(tuple(series.y) == curve for chart in charts for series in chart.series)
        assert figure.claims(results)
    assert {"threshold-c", "threshold-s"} <= drawn


# Figure 27


def networks_costing(cost: Callable[[int, str, int], tuple[float, ...]]) -> dict[Point, Mean]:
    found = {
        Point(networks.network_at(types, name, hidden), "dql"): costing(0.0)._replace(
            cost=float(np.mean(cost(types, name, hidden))), costs=cost(types, name, hidden)
        )
        for types in networks.TYPES
        for name in networks.tried(types)
        for hidden in networks.HIDDEN
    }
    return {
        **found,
        **{Point(f"A:{types}", p): costing(0.03) for types in networks.TYPES for p in ("vi", "adaptive")},
    }


def like_the_text(types: int, name: str, hidden: int) -> tuple[float, ...]:
    level = 0.1 - 0.001 * hidden - (0.002 if name == "large" else 0.0)
    level += {"minimal": 0.004, "reduced1": 0.002}.get(name, 0.0) * abs(types - 6)
    return (level - 0.05, level + 0.05)


def test_the_claims_of_figure_27_hold_where_things_are_as_the_text_says() -> None:
    sizes = networks.weight_bytes(RATES)
    claims = networks.claims_27(networks_costing(like_the_text), sizes)
    assert [claim.holds for claim in claims] == [True] * 7


def test_each_claim_of_figure_27_can_fail() -> None:
    sizes = networks.weight_bytes(RATES)

    def apart(types: int, name: str, hidden: int) -> tuple[float, ...]:
        level = (
            0.1 * hidden + (0.05 if name == "large" else 0.0) + (0.01 * types if name == "reduced2" else 0.0)
        )
        return (level, level + 1e-4)

    smallest = {at: 1 if at[1] == "large" else size for at, size in sizes.items()}
    claims = by_id(networks.claims_27(networks_costing(apart), smallest))
    assert {claim.holds for claim in claims.values()} == {False}
    assert claims["figure-27/hidden layers of least cost"].shown == "one"
    assert claims["figure-27/3 types/encoding that takes most memory"].shown == "reduced2"


def test_analysis_of_variance_agrees_with_scipy() -> None:
    from scipy.stats import f_oneway

    rng = np.random.default_rng(3)
    groups = [tuple(rng.normal(shift, 1.0, 4)) for shift in (0.0, 0.3, 1.5)]
    assert networks.chance_of_equals(groups) == pytest.approx(f_oneway(*groups).pvalue)
    assert networks.chance_of_equals([(1.0,), (2.0,)]) == 1.0
    assert networks.chance_of_equals([(1.0, 1.0), (2.0, 2.0)]) == 0.0


def test_figure_27_draws_costs_by_layers_and_the_memory_of_weights() -> None:
    """Inputs by appendix B.3: a cell a type, or a deployment, or a count; 285 deployments of three types."""
    sizes = networks.weight_bytes(RATES)
    charts = networks.charts_27(networks_costing(like_the_text), sizes)
    assert names(charts[0]) == ["minimal", "large", "reduced1", "reduced2", "vi (DP)", "adaptive (ours)"]
    assert "large" not in names(charts[1])
    assert charts[0].series[0].x == ["1", "2", "3"]
    assert sizes[3, "minimal"] == 8 * (5 * 3 + 4 * 3 + 4 * 3 + 4 * 7)
    assert sizes[3, "large"] == 8 * (316 * 237 + 238 * 178 + 179 * 134 + 135 * 7)
    assert charts[-1].series[0].y[0] == pytest.approx(sizes[3, "minimal"] / 1e6)
