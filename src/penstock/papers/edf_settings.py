"""What Cardellini 2018 does not give of its experiment: the value taken, why, and the others tried."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.papers.edf_run import STATED, Assumed
from penstock.runtimes.sim.application import ColdStart

SWEPT_SEEDS = 3  # of every other value


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One of them; the others stay as stated while its values are tried."""

    name: str
    stated: float
    others: tuple[float, ...]
    why: str
    of: Callable[[Assumed, float], Assumed]

    @property
    def listed(self) -> str:
        return ", ".join(f"{value:g}" for value in self.others)


def _cold_minutes(assumed: Assumed, minutes: float) -> Assumed:
    return replace(assumed, cold_start=ColdStart(seconds=60 * minutes, factor=assumed.cold_start.factor))


def _cold_factor(assumed: Assumed, factor: float) -> Assumed:
    return replace(assumed, cold_start=ColdStart(seconds=assumed.cold_start.seconds, factor=factor))


SETTINGS_TRIED = (
    Setting(
        name="fluctuation of rates",
        stated=STATED.fluctuation,
        others=(0.0, 0.05, 0.1, 0.15, 0.25, 0.3),
        why="Standard deviation of the logarithm of the rate, drawn anew every interval of 30 s. The paper's "
        "managers react to 'fluctuations of the measured incoming data rate' (sec. 9), whose size it does "
        "not give; with this one threshold .3 is down about as long as printed.",
        of=lambda assumed, value: replace(assumed, fluctuation=value),
    ),
    Setting(
        name="SCV of partialRank's service times",
        stated=STATED.scv,
        others=(100.0, 200.0, 400.0),
        why="The paper says that rankings are refreshed periodically, so that work comes in bursts that "
        "utilisation does not show; with this one a threshold of .7 violates most of the time, .3 seldom.",
        of=lambda assumed, value: replace(assumed, scv=value),
    ),
    Setting(
        name="wait for a refresh (ms)",
        stated=1000 * STATED.refresh_s,
        others=(0.0, 20.0, 80.0),
        why="The part of the response time that does not depend on load. The paper gives no refresh period; "
        "its lowest mean is 94 ms.",
        of=lambda assumed, value: replace(assumed, refresh_s=value / 1000),
    ),
    Setting(
        name="cold start (min)",
        stated=STATED.cold_start.seconds / 60,
        others=(0.0, 5.0, 15.0, 20.0),
        why="Worker processes start cold, and the paper leaves out its first half hour because of 'the "
        "initial system setup', but does not say what happened in it. Taken because model-based with dear "
        "changes stands still with it, and does not without: docs/policies/token-bucket.md.",
        of=_cold_minutes,
    ),
    Setting(
        name="cold start (times as slow)",
        stated=STATED.cold_start.factor,
        others=(5.0, 20.0),
        why="As for its length.",
        of=_cold_factor,
    ),
)
