"""Figures 12, 16-18, 23-25 and 27 of Russo 2023 (TAAS), each by itself or all of them.

Deep policies take most of the time, so figures are reproductions of their own.
"""

from collections.abc import Callable, Mapping, Sequence

from penstock.papers.claims import Findings, Progress, Traces
from penstock.papers.taas_figure import Effort, Figure, findings
from penstock.papers.taas_figures_costs import figure_12, figure_16, figure_17
from penstock.papers.taas_figures_networks import figure_18, figure_27
from penstock.papers.taas_figures_time import figure_23, figure_24, figure_25

_EFFORT = Effort()

SETTINGS = (
    "Figures print no numbers: claims are sentences of the paper's text, judged by a measure of ours that "
    "each note gives. What is not in the paper's figures (value iteration in some, `adaptive` in all) is "
    "shown beside them and marked as ours.",
    "Limits for words like far, close, slightly higher or unacceptable (2 and 1.25 times) were chosen with "
    "the printed tables and published results in view, so Figures 16, 23 and 25 are no blind test.",
    "Taxi, 400,001 slots, 30 levels up to 650/s, as published: see taas-tables for what that means (first "
    "replicas, normalisation, old speedups of B with ten types, B2 priced by speedup^1.5). Figure 17: the "
    "settings of Tables 3 and 5, Taxi and Tweets.",
    f"Policies that draw at random: means of {_EFFORT.seeds} seeds; deep ones {_EFFORT.deep_seeds}, whose "
    f"results differ much from seed to seed (taas-deep has ten); Figure 27 {_EFFORT.network_seeds} for every "
    "network.",
    "DP is value iteration planned off-line with the last month of Taxi (with Tweets: its last 44,000 "
    "slots). It cannot be computed for ten types and twenty replicas.",
    "The text does not say which infrastructure Figures 23-25 show: claims are made for A with three types, "
    "values for B with three types are shown. Figure 24: the first 200,000 slots, then twice the rates from "
    "slot 262,500 on; levels up to 650/s as before the change, and once more up to the highest rate. This "
    "choice was made after looking at the tabular policies on both, in Figures 24 and 25.",
    "Figure 16: threshold-0 uses the first type, as the text has it; the published code has no such policy "
    "(it takes the cheapest type instead), so what the paper drew as Thr-0, if anything, may be Thr-C.",
    "Figure 12: the policy, infrastructure and weights of the paper's example are not given; ours are in the "
    "charts, and the claim is about QL+PDS+. Figure 18: 10 replicas, 8 bytes a value, of networks the "
    "weights alone. Figure 27: with few seeds only large differences are significant.",
)

FIGURES: Mapping[int, Callable[[Traces, Effort], Figure]] = {
    12: figure_12,
    16: figure_16,
    17: figure_17,
    18: figure_18,
    23: figure_23,
    24: figure_24,
    25: figure_25,
    27: figure_27,
}


def reproduce(
    numbers: Sequence[int], traces: Traces, threads: int, progress: Progress, effort: Effort = _EFFORT
) -> Findings:
    """Run these figures, one after another."""
    return findings([FIGURES[number](traces, effort) for number in numbers], threads, progress)
