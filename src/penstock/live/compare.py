"""The same load, one run after another: under control, and with replicas that stay as they are."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from penstock.live.applications import Load, application, feeder, static_replicas
from penstock.live.record import Interval, Summary
from penstock.live.run import LiveRun
from penstock.live.settings import LiveSettings

STATIC_PEAK = "static-peak"
STATIC_MEAN = "static-mean"


def compared(
    name: str,
    policies: Sequence[str],
    load: Load,
    *,
    base: LiveSettings,
    slo_s: float | None,
    max_replicas: int,
    began: Callable[[str], None] = lambda label: None,
    shown: Callable[[Interval], None] = lambda interval: None,
) -> Iterator[Summary]:
    """A summary of every run. The static ones have the replicas the peak or the mean of the load needs."""
    rates = load.trace().rates
    for label in policies:
        began(label)
        settings = replace(base, out=base.out / label, label=label)
        if label in (STATIC_PEAK, STATIC_MEAN):
            rate = float(rates.max() if label == STATIC_PEAK else rates.mean())
            replicas = static_replicas(name, rate, max_replicas=max_replicas)
            settings = replace(settings, policy="threshold-c", advise=True, replicas_of=replicas)
        else:
            settings = replace(settings, policy=label)
        app = application(name, slo_s=slo_s, max_replicas=max_replicas)
        yield LiveRun(app, settings, feeder(name, load), shown=shown).run()


def check_out(out: Path) -> Path:
    """The folder of all runs, which must be new."""
    from penstock.domain.errors import InputError

    if out.exists() and any(out.iterdir()):
        raise InputError(f"--out {out}: there is something in it; give another folder")
    return out
