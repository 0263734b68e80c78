"""The claims about Table 1 of Russo 2018, from made-up years."""

from dataclasses import replace

from penstock.papers.claims import Claim, Verdict
from penstock.papers.mdp_pipeline import LOWER_EDGE, MIDPOINT, YearResult
from penstock.papers.mdp_table import (
    AGENTS,
    CHECKED,
    PRINTED,
    READINGS,
    SLA_AXIS_S,
    STATED,
    Key,
    effects,
    growing_gap,
)

YEAR = YearResult(
    avg_cost=0.1,
    violations=100,
    reconfigurations=100,
    instances=10.0,
    first_month_cost=0.2,
    so_far=(),
    slots=1000,
)
AS_PRINTED = {
    policy: replace(
        YEAR,
        avg_cost=float(cost),
        violations=int(violations),
        reconfigurations=int(moves),
        first_month_cost=0.1 if policy == "centralised RL+" else 0.2,
    )
    for policy, (cost, violations, moves, _) in PRINTED.items()
}


def results(**agents_at: float) -> dict[Key, YearResult]:
    """Everything as printed; agents at .7 cost this much at some T_SLA."""
    made: dict[Key, YearResult] = {}
    for within in (LOWER_EDGE, MIDPOINT):
        for sla_s in SLA_AXIS_S:
            for policy in ("centralised MDP", *AGENTS):
                made[policy, 3, sla_s, within] = AS_PRINTED[policy]
    for reading in READINGS:
        for policy in ("centralised RL", "centralised RL+"):
            made[policy, 3, reading.sla_s, reading.within] = AS_PRINTED[policy]
    for limit, dearer in agents_at.items():
        key = ("decentralised .7", 3, float(limit), LOWER_EDGE)
        made[key] = replace(made[key], avg_cost=dearer)
    return made


def by_id(found: dict[Key, YearResult]) -> dict[str, Claim]:
    table = {policy: found[policy, 3, STATED.sla_s, STATED.within] for policy in PRINTED}
    return {one.id.removeprefix(f"effects/{STATED.name}/"): one for one in effects(STATED, table, found)}


def test_what_is_as_printed_holds_at_every_limit() -> None:
    claims = by_id(results())
    assert {claim.verdict for claim in claims.values()} == {Verdict.HOLDS}
    near = claims["decentralised .7/cost over centralised MDP's"]
    assert (near.printed, str(near.asked)) == ("0.173 / 0.163 = 1.061", "<1.12")


def test_an_effect_that_another_t_sla_reverses_holds_within_a_range() -> None:
    claims = by_id(results(**{"1.8": 0.25, "2.3": 0.25}))
    claim = claims["decentralised .7/cost over decentralised .6's"]
    assert claim.verdict is Verdict.HOLDS_WITHIN
    assert claim.within == "T_SLA (s) 1.95 to 2.1 (tried: 1 to 2.6)"
    assert by_id(results(**{"2.02": 0.25}))["decentralised .7/cost over decentralised .6's"].verdict is (
        Verdict.DOES_NOT
    )


def test_what_depends_on_t_sla_is_not_claimed_elsewhere() -> None:
    found = results()
    table = {policy: found[policy, 3, CHECKED.sla_s, CHECKED.within] for policy in PRINTED}
    claims = {one.id.partition("/")[2].partition("/")[2]: one for one in effects(CHECKED, table, found)}
    shown = claims["decentralised .7/cost over centralised MDP's"]
    assert (shown.verdict, shown.met) == (Verdict.NOT_CLAIMED, None)


def test_the_gap_is_claimed_in_the_papers_words_with_the_other_limit_beside_it() -> None:
    found = results()
    for key, year in list(found.items()):
        for operators in (1, 2, 4):
            limits = (round(reading.sla_s / 3 * operators, 3) for reading in READINGS)
            for limit in limits:
                dearer = 0.01 * operators if key[0] == "decentralised .7" else 0.0
                found[key[0], operators, limit, key[3]] = replace(year, avg_cost=0.163 + dearer)
    claims = {one.id: one for one in growing_gap(found)}
    claim = claims[f"figure-2b/{STATED.name}/1 to 2 operators/gap over the next"]
    assert claim.printed == "the cost gap slightly increases as the application gets more complex"
    assert [value for value, _ in claim.tried[0].measured] == [1.95, 2.02]
    assert claim.verdict is Verdict.HOLDS
