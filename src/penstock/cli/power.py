"""`penstock power`: the processor's frequencies and the energy it uses; holding a frequency for a while."""

import time
from collections.abc import Callable, Sequence
from math import ceil, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import options, screen
from penstock.domain.errors import InputError

if TYPE_CHECKING:
    from penstock.runtimes.linux.energy import Domain, Used
    from penstock.runtimes.linux.frequency import Policies, Policy
    from penstock.runtimes.linux.sysfs import Absent, Sysfs

_LEAST_S = 0.1  # counters move about once in a millisecond: less says little
_HOLD_S = 30.0


def power(
    seconds: Annotated[
        float, typer.Option("--seconds", help="Measure watts over this long, before anything is held.")
    ] = 1.0,
    ghz: Annotated[
        float | None,
        typer.Option(
            "--ghz", help="Hold all CPUs at this frequency for a while, and set back what was found."
        ),
    ] = None,
    hold_s: Annotated[
        float | None,
        typer.Option("--for", help=f"Seconds to hold it, with --ghz; {_HOLD_S:g} if left out."),
    ] = None,
    restore: Annotated[
        bool,
        typer.Option("--restore", help="Set back what a `penstock power --ghz` found that was killed."),
    ] = False,
    state: Annotated[
        Path,
        typer.Option(
            "--state", help="Where --ghz keeps what it found until it is set back; one machine, one place."
        ),
    ] = Path("/run/penstock"),
    sys_root: Annotated[
        Path, typer.Option("--sys", help="Another tree than /sys, to try things without such hardware.")
    ] = Path("/sys"),
    json_output: options.JsonOption = False,
) -> None:
    """Show the frequencies this machine can run at and the watts it uses; or hold a frequency for a while.

    `penstock power` changes nothing. It shows the CPUs by policy (those that share a clock) with governor,
    limits and possible frequencies, and the mean power of every RAPL domain (package, core, dram). What the
    machine does not have is said in a line, with the reason.

    `penstock power --ghz 1.5 --for 30` holds a frequency, shows the watts before and during, and sets back
    what it found: at the end, after Ctrl-C, and after a kill -9 at the next start or with --restore. It
    needs root, as do the energy counters since Linux 5.10. Exit status 2 where it cannot be done.
    """
    from penstock.runtimes.linux.energy import domains
    from penstock.runtimes.linux.frequency import policies
    from penstock.runtimes.linux.sysfs import Sysfs

    _check(seconds, "--seconds")
    if hold_s is not None:
        _check(hold_s, "--for")
        if ghz is None:
            raise InputError("--for: how long to hold which frequency? Give --ghz, too")
    if restore and ghz is not None:
        raise InputError("--restore and --ghz: --ghz restores first anyway; give one of them")
    if not sys_root.is_dir():
        raise InputError(f"--sys {sys_root}: no such directory")
    sysfs = Sysfs(sys_root)
    if restore:
        _restore(sysfs, state, json_output)
    elif ghz is not None:
        _hold(sysfs, state, ghz, _HOLD_S if hold_s is None else hold_s, seconds, json_output)
    else:
        counted = domains(sysfs)
        used, seen = _measured(sysfs, counted, seconds), policies(sysfs)
        if json_output:
            screen.print_json(_as_json(seen, counted, used))
        else:
            _print_policies(seen)
            _print_watts(counted, ("watts", used))
        _warn_of_what_was_left(state)


def _check(seconds: float, option: str) -> None:
    if not (isfinite(seconds) and seconds >= _LEAST_S):
        raise InputError(f"{option} {seconds:g}: give at least {_LEAST_S:g} s")


def _measured(
    sysfs: "Sysfs",
    counted: "tuple[Domain, ...] | Absent",
    seconds: float,
    *,
    holding: Callable[[], None] | None = None,
) -> "tuple[Used, ...]":
    """Energy over some seconds. Nobody waits where nothing can be counted, except to hold a frequency."""
    from penstock.runtimes.linux.energy import Meter
    from penstock.runtimes.linux.sysfs import Absent

    meter = Meter(sysfs, () if isinstance(counted, Absent) else counted, clock=time.monotonic)
    if not meter.counts and holding is None:
        return meter.used()
    began_s = time.monotonic()
    # Read every second: a counter that is read too rarely turns round unnoticed.
    while (left_s := began_s + seconds - time.monotonic()) > 0:
        time.sleep(min(left_s, 1.0))
        meter.read()
        if holding is not None:
            holding()
    return meter.used()


def _hold(sysfs: "Sysfs", state: Path, ghz: float, hold_s: float, before_s: float, json_output: bool) -> None:
    from penstock.runtimes.linux.energy import domains
    from penstock.runtimes.linux.frequency import HeldFrequency, policies

    counted = domains(sysfs)
    with HeldFrequency(sysfs, state) as held:
        held.check(ghz)  # before the wait
        if held.recovered:
            screen.complain(f"{', '.join(held.recovered)}: restored what a process found that was killed")
        before = _measured(sysfs, counted, before_s)
        held.set(ghz)
        with screen.progress(f"holding {ghz:g} GHz", ceil(hold_s)) as bar:
            during = _measured(sysfs, counted, hold_s, holding=bar.advance)
        running = policies(sysfs)
    if json_output:
        screen.print_json(
            {
                **_as_json(policies(sysfs), counted, before),
                "held": {
                    "ghz": ghz,
                    "seconds": hold_s,
                    "cpufreq": _cpufreq_as_json(running),
                    "rapl": _rapl_as_json(counted, during),
                },
            }
        )
        return
    _print_policies(running, title=f"while held at {ghz:g} GHz")
    _print_watts(counted, ("watts before", before), (f"at {ghz:g} GHz", during))
    screen.out.print(f"held for {hold_s:g} s; everything is as it was found")


def _restore(sysfs: "Sysfs", state: Path, json_output: bool) -> None:
    from penstock.runtimes.linux.frequency import recover

    names = recover(sysfs, state)
    if json_output:
        screen.print_json({"restored": list(names)})
    else:
        screen.out.print(f"restored: {', '.join(names)}" if names else "there is nothing to restore")


def _warn_of_what_was_left(state: Path) -> None:
    from penstock.runtimes.linux.found import STATE_FILE, read_left_behind

    try:
        left = read_left_behind(state / STATE_FILE)
    except InputError as problem:  # to show something, it is not needed
        screen.complain(problem)
        return
    if left is not None:
        screen.complain(
            f"process {left.pid} holds a frequency, or was killed while it did; if it has ended, "
            "`penstock power --restore` sets back what it found"
        )


def _print_policies(seen: "Policies | Absent", *, title: str | None = None) -> None:
    from penstock.runtimes.linux.sysfs import Absent

    if isinstance(seen, Absent):
        screen.out.print(f"frequencies: {seen.reason}", soft_wrap=True)
        return
    rows = [
        (
            one.name,
            _cpus(one.cpus),
            one.driver or "-",
            one.governor,
            *(
                "-" if khz is None else f"{khz / 1e6:.6g}"
                for khz in (one.current_khz, one.min_khz, one.max_khz)
            ),
            one.allowed,
        )
        for one in seen.read
    ]
    if rows:
        header = ("policy", "CPUs", "driver", "governor", "GHz now", "min", "max", "can be set to")
        screen.print_table(header, rows, title=title)
    for name, why in seen.unread.items():
        screen.out.print(f"{name}: {why}", soft_wrap=True)


def _cpus(cpus: Sequence[int]) -> str:
    """0-3, 8."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _print_watts(counted: "tuple[Domain, ...] | Absent", *measured: "tuple[str, tuple[Used, ...]]") -> None:
    from penstock.runtimes.linux.sysfs import Absent

    if isinstance(counted, Absent):
        screen.out.print(f"energy: {counted.reason}", soft_wrap=True)
        return
    by_domain = list(zip(*(used for _, used in measured), strict=True))
    if all(one.watts is None for row in by_domain for one in row):  # one line, not one for each domain
        screen.out.print(f"energy: {by_domain[0][0].why_not}", soft_wrap=True)
        return
    rows = [
        (
            row[0].domain.label,
            row[0].domain.zone,
            *("-" if one.watts is None else f"{one.watts:.2f}" for one in row),
        )
        for row in by_domain
    ]
    screen.print_table(("domain", "zone", *(name for name, _ in measured)), rows)
    for why in dict.fromkeys(one.why_not for row in by_domain for one in row if one.why_not is not None):
        screen.out.print(why, soft_wrap=True)


def _as_json(
    seen: "Policies | Absent", counted: "tuple[Domain, ...] | Absent", used: "tuple[Used, ...]"
) -> dict[str, Any]:
    return {"cpufreq": _cpufreq_as_json(seen), "rapl": _rapl_as_json(counted, used)}


def _cpufreq_as_json(seen: "Policies | Absent") -> dict[str, Any]:
    from penstock.runtimes.linux.sysfs import Absent

    if isinstance(seen, Absent):
        return {"why_not": seen.reason, "policies": [], "unread": {}}
    return {
        "why_not": None,
        "policies": [_policy_as_json(one) for one in seen.read],
        "unread": dict(seen.unread),
    }


def _policy_as_json(policy: "Policy") -> dict[str, Any]:
    return {
        "policy": policy.name,
        "cpus": list(policy.cpus),
        "driver": policy.driver,
        "governor": policy.governor,
        "current_ghz": None if policy.current_khz is None else policy.current_khz / 1e6,
        "min_ghz": policy.min_khz / 1e6,
        "max_ghz": policy.max_khz / 1e6,
        "lowest_ghz": policy.lowest_khz / 1e6,
        "highest_ghz": policy.highest_khz / 1e6,
        "table_ghz": [khz / 1e6 for khz in policy.table_khz],
    }


def _rapl_as_json(counted: "tuple[Domain, ...] | Absent", used: "tuple[Used, ...]") -> dict[str, Any]:
    from penstock.runtimes.linux.sysfs import Absent

    return {
        "why_not": counted.reason if isinstance(counted, Absent) else None,
        "domains": [
            {
                "zone": one.domain.zone,
                "name": one.domain.name,
                "within": one.domain.within,
                "seconds": one.seconds,
                "joules": one.joules,
                "watts": one.watts,
                "why_not": one.why_not,
            }
            for one in used
        ],
    }
