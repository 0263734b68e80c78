"""The order of the deep policies, printed and measured."""

from penstock.papers.claims import Claim
from penstock.papers.taas_deep import ROWS, cheapest_first, order_claims, printed_costs


def measured(cell: str, costs: dict[str, float]) -> list[Claim]:
    return [
        Claim(
            id=f"{cell}/{policy}/{column}",
            source="",
            printed="",
            measured=cost if column == "avg_cost" else 99.0,
            shown="",
            tolerance=None,
        )
        for policy, cost in costs.items()
        for column in ("avg_cost", "violations_pct")
    ]


def test_there_are_24_cells_and_three_printed_costs_in_each_no_two_alike() -> None:
    cells = printed_costs()
    assert len(cells) == 24
    assert all(costs.keys() == ROWS.keys() for costs in cells.values())
    assert all(len(set(costs.values())) == 3 for costs in cells.values())
    assert cells["table-2/A3"] == {"DQL": 0.0936, "DQL+PDS": 0.0599, "DQL+PDS+": 0.0494}


def test_the_order_of_a_cell_holds_if_it_is_the_printed_one_whatever_that_is() -> None:
    claims = [
        *measured("table-2/A3", {"DQL": 0.3, "DQL+PDS": 0.2, "DQL+PDS+": 0.1}),
        # Printed: DQL+PDS .0354 < DQL+PDS+ .0506 < DQL .0918.
        *measured("table-3/A3", {"DQL": 0.3, "DQL+PDS": 0.2, "DQL+PDS+": 0.1}),
        *measured("table-2/B3", {"DQL": 0.1, "DQL+PDS": 0.2, "DQL+PDS+": 0.3}),
    ]
    first, second, third, order, cheapest = order_claims(claims)
    assert (first.id, first.printed) == ("table-2/A3/order by average cost", "DQL+PDS+ < DQL+PDS < DQL")
    assert (first.holds, first.measured) == (True, 3)
    assert (second.holds, second.measured) == (False, 2)
    assert (third.holds, third.measured) == (False, 0)
    assert (order.printed, order.shown, order.note) == ("2", "2", "of 3 cells")
    assert (cheapest.printed, cheapest.shown) == ("2", "2")
    assert order.holds is None


def test_cheapest_first() -> None:
    assert cheapest_first({"a": 2.0, "b": 1.0}) == ("b", "a")
