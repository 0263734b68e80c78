"""The deep rows of Tables 2-5 of Russo 2023 (TAAS): DQL, DQL+PDS and DQL+PDS+, and which of them is cheapest.

720 runs, about two hours on two cores, so they are a reproduction of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from penstock.papers.claims import Claim, Progress, Traces
from penstock.papers.taas_tables import Row, printed_rows, settled, table_rows

SETTINGS = (
    "As for the other rows of Tables 2-5 (taas-tables): the same slots, first replicas, normalisation and "
    "old speedups of B with ten types.",
    "Three hidden ReLU layers of 3/4 of their inputs, SGD with step size .1, Xavier, no target network; the "
    "last 10,000 experiences, a batch of 32 every 5 slots; exploration (DQL only) as for QL. As the "
    "published code does: no replicas of a type share an input cell with another state, the target of DQL "
    "is the minimum over impossible actions too, and the loss is the mean of squares over all outputs.",
    "Random weights and batches lead to different deployments that hardly change any more, so seeds end up "
    "far apart: single values are reported without a tolerance. What is claimed is the order of the three "
    "by average cost, cell by cell.",
)

_NOTE = "mean of 10 seeds, which end up far apart"
_REPORTED = {"A": None, "B": None}
ROWS: dict[str, Row] = {
    "DQL": Row("dql", 10, {**_REPORTED}, False, _NOTE),
    "DQL+PDS": Row("dql-pds", 10, {**_REPORTED}, False, _NOTE),
    "DQL+PDS+": Row("dql-pds-plus", 10, {**_REPORTED}, False, f"{_NOTE}; each with its own wrong model"),
}
BEST_FIRST = ("DQL+PDS+", "DQL+PDS", "DQL")  # as the paper's text has it (sec. 6.2.2)

Costs = Mapping[str, float]  # by policy


def reproduce(traces: Traces, threads: int, progress: Progress) -> list[Claim]:
    """Run everything and compare."""
    claims = settled(list(table_rows(traces, ROWS)), threads, progress)
    return [*claims, *order_claims(claims)]


def order_claims(claims: Sequence[Claim]) -> list[Claim]:
    """Which policy is cheaper than which: a claim per cell, and in how many cells the text's order holds."""
    measured: dict[str, dict[str, float]] = {}
    for claim in claims:
        table, cell, policy, column = claim.id.split("/")
        if column == "avg_cost":
            measured.setdefault(f"{table}/{cell}", {})[policy] = claim.measured
    printed = {cell: costs for cell, costs in printed_costs().items() if cell in measured}
    counted = [
        _count("cells with DQL+PDS+ < DQL+PDS < DQL", _in_the_texts_order, printed, measured),
        _count("cells with DQL+PDS+ the cheapest", _plus_is_cheapest, printed, measured),
    ]
    return [*(_order(cell, printed[cell], costs) for cell, costs in measured.items()), *counted]


def _in_the_texts_order(costs: Costs) -> bool:
    return cheapest_first(costs) == BEST_FIRST


def _plus_is_cheapest(costs: Costs) -> bool:
    return cheapest_first(costs)[0] == BEST_FIRST[0]


def _count(
    what: str, holds: Callable[[Costs], bool], printed: Mapping[str, Costs], measured: Mapping[str, Costs]
) -> Claim:
    found = sum(holds(costs) for costs in measured.values())
    return Claim(
        id=f"deep-rows/{what}",
        source="Russo 2023, Tables 2-5",
        printed=str(sum(holds(costs) for costs in printed.values())),
        measured=found,
        shown=str(found),
        tolerance=None,
        note=f"of {len(measured)} cells",
    )


def printed_costs() -> dict[str, dict[str, float]]:
    """The average costs of the deep rows as printed, by cell and policy."""
    costs: dict[str, dict[str, float]] = {}
    for row in printed_rows():
        if row["policy"] in ROWS:
            cell = f"table-{row['table']}/{row['infrastructure']}{row['node_types']}"
            costs.setdefault(cell, {})[row["policy"]] = float(row["avg_cost"])
    return costs


def cheapest_first(costs: Costs) -> tuple[str, ...]:
    return tuple(sorted(costs, key=lambda policy: costs[policy]))


def _order(cell: str, printed: Costs, measured: Costs) -> Claim:
    pairs = combinations(cheapest_first(printed), 2)
    return Claim(
        id=f"{cell}/order by average cost",
        source=f"Russo 2023, {cell.partition('/')[0].replace('table-', 'Table ')}",
        printed=" < ".join(cheapest_first(printed)),
        measured=sum(measured[cheaper] < measured[dearer] for cheaper, dearer in pairs),
        shown=" < ".join(cheapest_first(measured)),
        tolerance=0.0,
        note="measured: how many of the three pairs are in the printed order",
    )
