"""Figures 12, 16 and 17 of Russo 2023 (TAAS): what a whole run costs."""

from collections.abc import Iterable

from penstock.control.spec import Manager
from penstock.domain.objective import Weights
from penstock.papers.adaptive import Cell, can_be_planned, cells, spec_of
from penstock.papers.claims import Chart, Claim, Traces
from penstock.papers.taas_figure import (
    BESIDE,
    DEEP,
    LEARNERS,
    LINEAR,
    OURS,
    PLANNED,
    TABULAR,
    Effort,
    Figure,
    Mean,
    Measured,
    Point,
    bars,
    below,
    in_cells,
    jobs_of,
    said,
    shown_only,
)
from penstock.papers.taas_tables import rates_of
from penstock.simulation.spec import OneOperator

# Figure 12

WEIGHTS = (
    Weights(performance=0.6, resources=0.2, reconfiguration=0.2),
    Weights(performance=1 / 3, resources=1 / 3, reconfiguration=1 / 3),
    Weights(performance=0.8, resources=0.1, reconfiguration=0.1),
    Weights(performance=0.1, resources=0.8, reconfiguration=0.1),
    Weights(performance=0.1, resources=0.1, reconfiguration=0.8),
)
EXAMPLE = "ql-pds-plus"  # what is claimed of; the paper does not name its policy
TUNED = (EXAMPLE, *BESIDE)


def weights_label(weights: Weights) -> str:
    parts = (weights.performance, weights.resources, weights.reconfiguration)
    return " / ".join(f"{part:.2g}" for part in parts)


def figure_12(traces: Traces, effort: Effort) -> Figure:
    rates = traces.taxi[: effort.slots]
    return Figure(
        jobs={
            Point(weights_label(weights), policy): jobs_of(
                OneOperator(operator_policy=Manager(policy), weights=weights, as_published=True),
                effort.seeds_of(policy),
                rates,
                traces.taxi_last_month,
            )
            for weights in WEIGHTS
            for policy in TUNED
        },
        charts=charts_12,
        claims=claims_12,
    )


def charts_12(results: Measured) -> list[Chart]:
    places = [weights_label(weights) for weights in WEIGHTS]
    return [
        Chart(
            title=f"Figure 12: {what} by the weights of the cost function",
            note="Weights of performance / resources / reconfigurations. Taxi, A with three types, 10 "
            "replicas; the paper does not say which policy, infrastructure and weights it drew.",
            x_title="weights",
            y_title=unit,
            series=bars(results, places, TUNED, value),
            bars=True,
        )
        for what, unit, value in (
            ("resources", "mean price of the deployment", lambda mean: mean.resources),
            ("violations", "% of slots", lambda mean: mean.violations_pct),
            ("reconfigurations", "% of slots", lambda mean: mean.reconfigurations_pct),
        )
    ]


def _dominates(one: Mean, other: Mean) -> bool:
    """No worse in any of the three metrics."""
    return (
        one.resources <= other.resources
        and one.violations_pct <= other.violations_pct
        and one.reconfigurations_pct <= other.reconfigurations_pct
    )


def claims_12(results: Measured) -> list[Claim]:
    claims = []
    for policy in TUNED:
        by_weights = {
            weights_label(weights): results[Point(weights_label(weights), policy)] for weights in WEIGHTS
        }
        best = [
            where
            for where, mean in by_weights.items()
            if not any(
                _dominates(other, mean) and not _dominates(mean, other) for other in by_weights.values()
            )
        ]
        different = {by_weights[where][1:4] for where in best}
        note = f"several weights of which none is as good in all three metrics: {'; '.join(best)}"
        name = f"figure-12/{policy}/weights lead to different trade-offs"
        if policy == OURS:
            claims.append(
                shown_only(name, "ours", None, float(len(different)), f"{len(different)} trade-offs", note)
            )
        else:
            claims.append(
                said(
                    name,
                    "sec. 5",
                    "a different trade-off",
                    len(different) > 1,
                    otherwise="one is best in all",
                    number=float(len(different)),
                    note=note,
                    claimed=policy == EXAMPLE,
                )
            )
    return claims


# Figure 16

FAMILIES = ("A", "B", "B2")
TYPES = (1, 3, 6, 10)
BASELINES = (
    *(f"{name}-{pick}" for name in ("threshold", "drs", "lohrmann") for pick in "cs0"),
    "heinze-c",
    "heinze-s",
)
HEINZE_AND_LOHRMANN = tuple(policy for policy in BASELINES if policy.startswith(("heinze", "lohrmann")))
COMPARED = (*BASELINES, *TABULAR, LINEAR, *BESIDE)
HIGHER = 1.25  # "slight higher costs": a quarter more than QL-PDS
MANY_VIOLATIONS_PCT, FEW_VIOLATIONS_PCT = 50.0, 5.0  # "completely fails"; eta_V, sec. 5


def figure_16(traces: Traces, effort: Effort) -> Figure:
    rates = traces.taxi[: effort.slots]
    return Figure(
        jobs={
            Point(f"{family}:{types}", policy): jobs_of(
                OneOperator(
                    operator_policy=Manager(policy), infrastructure=f"{family}:{types}", as_published=True
                ),
                effort.seeds_of(policy),
                rates,
                traces.taxi_last_month,
            )
            for family in FAMILIES
            for types in TYPES
            for policy in COMPARED
        },
        charts=charts_16,
        claims=claims_16,
    )


def charts_16(results: Measured) -> list[Chart]:
    return [
        Chart(
            title=f"Figure 16: average cost by number of node types, infrastructure {family}",
            note="Taxi, 10 replicas, as published. The paper draws the baselines and QL-PDS; the other "
            "learners, the planner and our policy are beside them.",
            x_title="infrastructure and number of types",
            y_title="average cost",
            series=bars(results, [f"{family}:{types}" for types in TYPES], COMPARED),
            bars=True,
            log_y=True,
        )
        for family in FAMILIES
    ]


def claims_16(results: Measured) -> list[Claim]:
    section = "sec. 6.2.1"

    def cost(family: str, types: int, policy: str) -> float:
        return results[Point(f"{family}:{types}", policy)].cost

    def cheapest_of(policies: Iterable[str], family: str, types: int) -> str:
        return min(policies, key=lambda policy: cost(family, types, policy))

    def in_a(policy: str) -> float:
        return sum(cost("A", types, policy) for types in TYPES)

    higher = [policy for policy in BASELINES if in_a(policy) > HIGHER * in_a("ql-pds")]
    claims = [
        said(
            "figure-16/A/baselines with higher costs",
            section,
            "lohrmann-c, heinze-c",
            set(higher) == {"lohrmann-c", "heinze-c"},
            otherwise=", ".join(higher) or "none",
            number=float(len(higher)),
            note=f"mean over 1, 3, 6 and 10 types more than {HIGHER:g} times QL-PDS's; DRS and Lohrmann "
            "ignore speedups, as in the published code, though the text says they know them",
        )
    ]
    for family in ("B", "B2"):
        for types in TYPES[1:]:
            where = f"{family}:{types}"
            mine = cost(family, types, "ql-pds")
            cheapest = cheapest_of(BASELINES, family, types)
            plus = cost(family, types, "ql-pds-plus")
            rest = cost(family, types, cheapest)
            claims.append(
                said(
                    f"figure-16/{where}/lowest average cost",
                    section,
                    "QL-PDS",
                    mine < rest,
                    otherwise=cheapest,
                    number=mine / rest,
                    note=f"QL-PDS {mine:.4f}, the cheapest baseline {cheapest} {rest:.4f}; "
                    f"QL-PDS+ {plus:.4f}, {OURS} {cost(family, types, OURS):.4f}"
                    + ("; Table 2 itself prints TB-S below QL+PDS" if family == "B" else ""),
                )
            )
    for types in TYPES[1:]:
        where = f"B:{types}"
        cheapest = cheapest_of(HEINZE_AND_LOHRMANN, "B", types)
        ratio = cost("B", types, cheapest) / cost("B", types, "ql-pds")
        claims.append(
            said(
                f"figure-16/{where}/Heinze and Lohrmann",
                section,
                "higher costs",
                ratio > 1,
                otherwise=f"not {cheapest}",
                number=ratio,
                note=f"the cheapest of them, {cheapest}, over QL-PDS",
            )
        )
        failing = results[Point(where, "threshold-c")].violations_pct
        meeting = results[Point(where, "threshold-s")].violations_pct
        claims += [
            said(
                f"figure-16/{where}/Thr-C violations (%)",
                section,
                "completely fails",
                failing > MANY_VIOLATIONS_PCT,
                otherwise="does not",
                number=failing,
                note=f"{failing:.1f} % of slots violate; judged by more than {MANY_VIOLATIONS_PCT:g} %",
            ),
            said(
                f"figure-16/{where}/Thr-S violations (%)",
                section,
                "acceptable",
                meeting < FEW_VIOLATIONS_PCT,
                otherwise="not acceptable",
                number=meeting,
                note=f"{meeting:.1f} % of slots violate; sec. 5's example allows {FEW_VIOLATIONS_PCT:g} %",
            ),
        ]
    return claims


# Figure 17

LEARNERS_AND_OTHERS = (*LEARNERS, PLANNED, OURS)
TABLES = ("3", "5")  # 20 replicas


def _cells() -> dict[str, Cell]:
    """The cells with 20 replicas, by trace and infrastructure."""
    return {f"{cell.trace} {cell.infrastructure}": cell for cell in cells() if cell.table in TABLES}


def figure_17(traces: Traces, effort: Effort) -> Figure:
    return Figure(
        jobs={
            Point(where, policy): jobs_of(
                spec_of(cell, policy, 1),
                effort.seeds_of(policy),
                rates_of(traces, cell.trace)[: effort.slots],
                traces.taxi_last_month if cell.trace == "taxi" else None,
            )
            for where, cell in _cells().items()
            for policy in LEARNERS_AND_OTHERS
            if policy != PLANNED or can_be_planned(cell)
        },
        charts=charts_17,
        claims=claims_17,
    )


def charts_17(results: Measured) -> list[Chart]:
    return [
        Chart(
            title=f"Figure 17: average cost with 20 replicas, {trace}, infrastructure {family}",
            note="As in Tables 3 and 5. Value iteration and our policy are not in the paper's figure; with "
            "ten types there are too many deployments to plan.",
            x_title="infrastructure and number of types",
            y_title="average cost",
            series=bars(
                results,
                [name for name in _cells() if name.startswith(f"{trace} {family}:")],
                LEARNERS_AND_OTHERS,
            ),
            bars=True,
            log_y=True,
        )
        for trace in ("taxi", "tweets")
        for family in ("A", "B")
    ]


def claims_17(results: Measured) -> list[Claim]:
    section = "sec. 6.2.2"
    everywhere = list(_cells())
    in_a = [where for where in everywhere if " A:" in where]
    in_b = [where for where in everywhere if " B:" in where]

    def at(where: str, policy: str) -> Mean:
        return results[Point(where, policy)]

    def cheaper(policy: str, than: str, where: list[str]) -> dict[str, bool]:
        return {cell: at(cell, policy).cost < at(cell, than).cost for cell in where}

    def worst(policy: str, where: list[str], column: str) -> float:
        return max(float(getattr(at(cell, policy), column)) for cell in where)

    few = [at(cell, "dql-pds").violations_pct < 5 for cell in everywhere]
    return [
        in_cells(
            "figure-17/QL reconfigures more than the other tabular learners",
            section,
            "in all the considered settings",
            {
                cell: all(
                    at(cell, "ql").reconfigurations_pct > at(cell, other).reconfigurations_pct
                    for other in TABULAR[1:]
                )
                for cell in everywhere
            },
            "poor behaviour, especially the reconfigurations",
        ),
        in_cells(
            "figure-17/A/QL+PDS costs less than QL",
            section,
            "clearly outperforms",
            cheaper("ql-pds", "ql", in_a),
            "average cost",
        ),
        below(
            "figure-17/A/QL+PDS violations (%)",
            section,
            "0.5",
            worst("ql-pds", in_a, "violations_pct"),
            "the worst cell; Tables 3 and 5 themselves print up to .6",
        ),
        below(
            "figure-17/A/QL+PDS reconfigurations (%)",
            section,
            "1",
            worst("ql-pds", in_a, "reconfigurations_pct"),
            "the worst cell; Tables 3 and 5 themselves print up to 4.0",
        ),
        in_cells(
            "figure-17/B/QL costs less than QL+PDS",
            section,
            "QL+PDS performs even worse than QL",
            cheaper("ql", "ql-pds", in_b),
            "average cost",
        ),
        in_cells(
            "figure-17/QL+PDS+ is the cheapest tabular learner",
            section,
            "consistently; the best",
            {
                cell: all(at(cell, "ql-pds-plus").cost < at(cell, other).cost for other in TABULAR[:2])
                for cell in everywhere
            },
            "average cost",
        ),
        shown_only(
            "figure-17/B/QL+FA violations (%), at most",
            f"Russo 2023, {section}",
            "50",
            found := worst(LINEAR, in_b, "violations_pct"),
            f"{found:.0f}",
            "of a mean over seeds that end up far apart",
        ),
        in_cells(
            "figure-17/DQL costs less than QL",
            section,
            "consistently better",
            cheaper("dql", "ql", everywhere),
            "average cost",
        ),
        below(
            "figure-17/A/DQL violations (%)",
            section,
            "1",
            worst("dql", in_a, "violations_pct"),
            "the worst cell; few seeds; Table 3 itself prints 1.1 with three types",
        ),
        shown_only(
            "figure-17/B/DQL violations (%), at most",
            f"Russo 2023, {section}",
            "9",
            found := worst("dql", in_b, "violations_pct"),
            f"{found:.0f}",
            "few seeds, which end up far apart",
        ),
        in_cells(
            "figure-17/A/DQL+PDS costs less than DQL",
            section,
            "clearly outperforms",
            cheaper("dql-pds", "dql", in_a),
            "average cost",
        ),
        said(
            "figure-17/DQL+PDS violations below 5 %",
            section,
            "in the vast majority",
            sum(few) >= 0.75 * len(few),
            otherwise=f"in {sum(few)} of {len(few)} cells",
            number=float(sum(few)),
            note=f"in {sum(few)} of {len(few)} cells; judged by three quarters of them",
        ),
        in_cells(
            "figure-17/B/DQL+PDS+ costs less than DQL+PDS",
            section,
            "overcomes this issue",
            cheaper("dql-pds-plus", "dql-pds", in_b),
            "average cost",
        ),
        shown_only(
            f"figure-17/{OURS} over the cheapest learner of the paper",
            "ours",
            None,
            ratio := max(
                at(cell, OURS).cost / min(at(cell, policy).cost for policy in LEARNERS) for cell in everywhere
            ),
            f"{ratio:.2f}",
            f"average cost, the cell where it is largest; deep policies: {', '.join(DEEP)}",
        ),
    ]
