"""Whether a run takes as much memory and disk after two hours as after half an hour, scaled all the time.

`paced` with a change of replicas at every interval, in a process of its own; every half minute the memory
of all its processes and the size of its folders are looked at. The page shows them over time.
"""

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path

from penstock.bench.figure import Figure
from penstock.files import write_whole
from penstock.live.run import RunError
from penstock.reports.endurance import page_of
from penstock.runtimes.spark.processes import MARK, Cast, Process, marked

STAGES = 1
_EVERY_S = 30.0
_RATE = 40  # tuples/s
_KEEP_GB = 0.005  # of results, so that their limit is reached
_LONGEST_END_S = 300.0  # of a run whose time is up
_MOST_GROWTH = 1.1  # from the second quarter of the time, in which all is warm, to the last
_MB = 1e6
_NOTHING_MB = 1.0  # what grows from nothing to less has no ratio, and does no harm

# What is held to be flat, and what is a record of the run: a line or a row for every interval.
_FOLDERS = {"work/streams": "disk: streams and results", "work/checkpoints": "disk: checkpoints"}
_ELSE, _TEMPORARY = "disk: all else", "disk: temporary"
_RECORDS, _RECORDED = "disk: records of every interval", ("journal.jsonl", "metrics")


@dataclass(frozen=True, slots=True)
class Sample:
    """One look: megabytes of whatever there is, by name."""

    at_s: float
    mb: Mapping[str, float]


def run_endurance(
    minutes: float = 120.0, out: Path = Path("out/endurance"), *, stage: Callable[[str], None]
) -> Iterator[Figure]:
    """Leaves a page and the samples in a folder."""
    yield Figure(name="machine load before", value=os.getloadavg()[0], unit="")
    stage(f"paced under --force-scaling for {minutes:g} minutes")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as work:
        run = Path(work) / "run"
        samples = list(_watched(run, Path(work) / "t", minutes, said=Path(work) / "said.txt"))
        summary = json.loads((run / "summary.json").read_text())
    write_whole(out / "endurance.json", json.dumps([{"at_s": one.at_s, **one.mb} for one in samples]))
    write_whole(out / "endurance.html", page_of([(one.at_s, one.mb) for one in samples], minutes))
    yield Figure(name="changes of replicas", value=summary["replica_changes"], unit="")
    yield Figure(name="tuples", value=summary["tuples"], unit="")
    yield Figure(name="queries that failed", value=len(summary["failures"]), unit="", at_most=0)
    yield from figures(samples)


def figures(samples: list[Sample]) -> Iterator[Figure]:
    """Of everything its mean over the last quarter of the time, over that of the second."""
    quarter = len(samples) // 4
    if not quarter:
        raise RunError(f"{len(samples)} samples are too few; give more minutes")
    for name in sorted({name for one in samples for name in one.mb}):
        second = _mean(samples[quarter : 2 * quarter], name)
        last = _mean(samples[-quarter:], name)

        yield Figure(name=f"{name}, at the end", value=last, unit="MB")
        if second or last > _NOTHING_MB:
            most = None if name == _RECORDS else _MOST_GROWTH
            yield Figure(
                name=f"{name}, last quarter over second",
                value=last / second if second else inf,
                unit="x",
                at_most=most,
            )


def _mean(samples: Iterable[Sample], name: str) -> float:
    values = [one.mb[name] for one in samples if name in one.mb]
    return sum(values) / len(values) if values else 0.0


def _watched(run: Path, temporary: Path, minutes: float, *, said: Path) -> Iterator[Sample]:
    temporary.mkdir()
    mark = secrets.token_hex(8)
    command = [
        *(sys.executable, "-m", "penstock", "run", "paced", "--force-scaling", "--out", str(run)),
        *("--minutes", f"{minutes:g}", "--load", "constant", "--low", str(_RATE), "--high", str(_RATE)),
        *("--keep-gb", str(_KEEP_GB)),
    ]
    with said.open("wb") as output:
        driver = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, MARK: mark, "TMPDIR": str(temporary)},
        )
    began_s = time.monotonic()
    try:
        while driver.poll() is None:
            seconds = time.monotonic() - began_s
            if seconds > 60 * minutes + _LONGEST_END_S:
                raise RunError(f"the run has not ended {_LONGEST_END_S:g} s after its time was up")
            if seconds < 60 * minutes:
                yield Sample(seconds, _looked_at(run, temporary, Cast(driver.pid, tuple(marked(mark)))))
            time.sleep(_EVERY_S)
        if driver.returncode:
            last = (said.read_text(errors="replace").strip().splitlines() or ["nothing"])[-1]
            raise RunError(f"the run ended with status {driver.returncode} and said: {last}")
    finally:
        for one in marked(mark):
            one.tell(signal.SIGKILL)


def _looked_at(run: Path, temporary: Path, cast: Cast) -> dict[str, float]:
    executors = cast.executors
    memory = {
        "driver's Python": cast.drivers,
        "driver's Java": cast.drivers_java,
        "master and worker": [*cast.masters, *cast.workers],
        "all executors": executors,
        "all Python workers": cast.pythons,
    }
    mb = {f"memory: {name}": _resident_mb(those) for name, those in memory.items()}
    if executors:
        mb["memory: an executor (mean)"] = _resident_mb(executors) / len(executors)
    sizes = dict.fromkeys((*_FOLDERS.values(), _ELSE, _RECORDS, _TEMPORARY), 0)
    for path, size in _files(run):
        if path.startswith(_RECORDED):
            sizes[_RECORDS] += size
        else:
            sizes[next((name for folder, name in _FOLDERS.items() if path.startswith(folder)), _ELSE)] += size
    sizes[_TEMPORARY] = sum(size for _, size in _files(temporary))
    return mb | {name: size / _MB for name, size in sizes.items()}


def _resident_mb(those: Iterable[Process]) -> float:
    return sum(one.resident_bytes for one in those) / _MB


def _files(place: Path) -> Iterator[tuple[str, int]]:
    """Paths within it, and bytes; without what goes while it is looked at."""
    for folder, _, names in os.walk(place):
        for path in (Path(folder) / name for name in names):
            with suppress(OSError):
                yield str(path.relative_to(place)), path.lstat().st_size
