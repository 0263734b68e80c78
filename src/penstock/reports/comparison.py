"""A comparison of policies as a table and as a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.compiled import Floats
from penstock.reports.figures import Run, cumulative_cost, pareto, replicas_over_time
from penstock.reports.html import Page
from penstock.reports.summary import Estimate, estimate

HEADER = ("policy", "cost", "late %", "changed %", "resources", "replicas")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyResults:
    """One policy's results, a value per seed, and one of its runs to look at."""

    policy: str
    avg_cost: tuple[float, ...]
    violations_pct: tuple[float, ...]
    reconfigurations_pct: tuple[float, ...]
    resource_cost: tuple[float, ...]
    mean_replicas: tuple[float, ...]
    cost: Floats
    replicas: Floats

    def estimates(self) -> tuple[tuple[Estimate, int], ...]:
        """Each column with its number of decimals."""
        return (
            (estimate(self.avg_cost), 4),
            (estimate(self.violations_pct), 2),
            (estimate(self.reconfigurations_pct), 2),
            (estimate(self.resource_cost), 2),
            (estimate(self.mean_replicas), 2),
        )

    def cells(self) -> tuple[str, ...]:
        return (self.policy, *(value.shown(decimals) for value, decimals in self.estimates()))

    def as_json(self) -> dict[str, Any]:
        names = ("avg_cost", "violations_pct", "reconfigurations_pct", "resource_cost", "mean_replicas")
        columns = {
            name: {"mean": value.mean, "half_width_95": value.half_width}
            for name, (value, _) in zip(names, self.estimates(), strict=True)
        }
        return {"policy": self.policy, "seeds": len(self.avg_cost), **columns}


def comparison_page(results: Sequence[PolicyResults], rates: Floats, *, title: str, setting: str) -> str:
    """The page of a comparison, cheapest policy first."""
    runs = [
        Run(
            policy=result.policy,
            cost=result.cost,
            replicas=result.replicas,
            seeds_resource_cost=result.resource_cost,
            seeds_violations_pct=result.violations_pct,
        )
        for result in results
    ]
    page = Page(title, setting)
    page.table(HEADER, [result.cells() for result in results])
    page.paragraph(
        "Cost is the average over slots and weighs violations (slots that were late), resources and "
        "reconfigurations (slots in which replicas changed) as the objective says; "
        "± is the half-width of a 95 % interval over seeds. Policies without ± do not depend on the seed."
    )
    page.heading("Cost so far")
    page.paragraph(
        "Average cost of all slots since the start, first seed. A learner starts high and comes down."
    )
    page.plot(cumulative_cost(runs))
    page.heading("Replicas over the last week")
    page.paragraph("The arrival rate, and below it the replicas each policy ran, first seed.")
    page.plot(replicas_over_time(runs, rates))
    page.heading("Cost against violations")
    page.paragraph("Every seed is a point; down and left is better.")
    page.plot(pareto(runs))
    return page.render()
