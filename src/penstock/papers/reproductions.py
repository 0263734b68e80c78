"""What can be reproduced, by name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from penstock.papers import (
    adaptive,
    am_tuning,
    edf_table,
    edrp_tables,
    mdp_table,
    mpc,
    mpc_migration,
    taas_deep,
    taas_figures,
    taas_tables,
)
from penstock.papers.claims import Claim, Findings, Progress, Traces


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """One table or figure of a paper."""

    title: str
    settings: Sequence[str]  # what the reader must know, a paragraph each
    run: Callable[[Traces, int, Progress], Findings]  # (traces, threads, progress)
    needs_traces: bool = True
    only_by_name: bool = False  # it takes too long to be run with all the others


def _claims_only(
    run: Callable[[Traces, int, Progress], list[Claim]],
) -> Callable[[Traces, int, Progress], Findings]:
    return lambda traces, threads, progress: Findings(claims=run(traces, threads, progress))


def _figures(*numbers: int) -> Reproduction:
    named = f"Figure {numbers[0]}" if len(numbers) == 1 else f"Figures {', '.join(map(str, numbers))}"
    return Reproduction(
        title=f"{named} of Russo 2023 (TAAS)",
        settings=taas_figures.SETTINGS,
        run=partial(taas_figures.reproduce, numbers),
        only_by_name=True,
    )


REPRODUCTIONS: Mapping[str, Reproduction] = {
    "taas-tables": Reproduction(
        title="Tables 2-5 of Russo 2023 (TAAS), every row but the deep ones",
        settings=taas_tables.SETTINGS,
        run=_claims_only(taas_tables.reproduce),
    ),
    "adaptive": Reproduction(
        title="Our default policy beside Tables 2-5 of Russo 2023 (TAAS), the optimum, and changes",
        settings=adaptive.SETTINGS,
        run=adaptive.reproduce,
    ),
    "taas-deep": Reproduction(
        title="Tables 2-5 of Russo 2023 (TAAS), the deep rows",
        settings=taas_deep.SETTINGS,
        run=_claims_only(taas_deep.reproduce),
        only_by_name=True,
    ),
    "taas-figures": _figures(*taas_figures.FIGURES),
    **{f"taas-figure-{number}": _figures(number) for number in taas_figures.FIGURES},
    "edf-table-1": Reproduction(
        title="Table 1 of Cardellini 2018 (FGCS), simulated",
        settings=edf_table.SETTINGS,
        run=edf_table.reproduce,
    ),
    "mdp-table-1": Reproduction(
        title="Table 1 and Figure 2 of Russo 2018 (centralised and decentralised elasticity)",
        settings=mdp_table.SETTINGS,
        run=mdp_table.reproduce,
    ),
    "am-tuning": Reproduction(
        title="Figures 20-22 of Russo 2023 (TAAS), the tuned Application Manager",
        settings=am_tuning.SETTINGS,
        run=am_tuning.reproduce,
    ),
    "edrp-tables": Reproduction(
        title="Tables III-V and Figures 5-6 of Cardellini 2017 (optimal replication and placement)",
        settings=edrp_tables.SETTINGS,
        run=lambda _, threads, progress: edrp_tables.reproduce(progress),
        needs_traces=False,
    ),
    "mpc": Reproduction(
        title="Results 1-4, Tables 5 and 7 and Figures 8-17 of De Matteis 2017 (model predictive control)",
        settings=(*mpc.SETTINGS, *mpc_migration.SETTINGS),
        run=lambda _, threads, progress: mpc.reproduce(threads, progress),
        needs_traces=False,
    ),
}
