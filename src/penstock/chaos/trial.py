"""One trial: the ledger under forced scaling, what its scenario has in store for it, and what came of it."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from penstock.apps.ledger.entry import NAME
from penstock.apps.ledger.query import SOURCE
from penstock.chaos import books, inside
from penstock.chaos.faults import Faults
from penstock.chaos.scenario import MAY_END_IT, Kind, Scenario
from penstock.domain.errors import InputError
from penstock.runtimes.spark.processes import MARK, marked
from penstock.runtimes.spark.stream_log import StreamLog

INPUT_S, RATE = 16, 50  # seconds of feeding, tuples/s
_INTERVAL_S = 2.0  # between two forced changes
_POLL_S = 0.1
_STUCK_S = 240.0  # without a tuple more at any stream
_GONE_S = 30.0  # for processes and temporary files to go after the run
_STARTS = 12  # of the driver, at the most
_ANY_REASON = ""
INFLUENCE = "influence.json"  # what clocks and disks are told by
_CHAINS = ("read", "post", "audit")


@dataclass(kw_only=True)
class Outcome:
    """What came of one trial; right if nothing stands in `problems`."""

    scenario: Scenario
    problems: list[str] = field(default_factory=list)
    happened: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # faults that could not be had, and why
    starts: int = 0
    changes: int = 0  # of replicas that came to their end
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        return not self.problems


class Trial:
    """Runs once; its folder is there afterwards."""

    def __init__(self, scenario: Scenario, folder: Path, on_event: Callable[[str], None]) -> None:
        self._scenario, self._folder, self._say = scenario, folder, on_event
        self._out, self._rates = folder / "run", folder / "rates.txt"
        self._mark = secrets.token_hex(8)
        self._faults = Faults(self._out, mark=self._mark, influence=folder / INFLUENCE)
        self._outcome = Outcome(scenario=scenario)
        self._due = list(scenario.faults)
        self._fed_s: dict[float, float] = {}  # share of the input -> since when it has been fed
        self._excused: list[str] = []  # it may end with status 1 and a line that has one of these
        self._told = self._killed = False  # told to end; by us
        self._rival: subprocess.Popen[bytes] | None = None  # a second controller

    def run(self) -> Outcome:
        began_s = time.monotonic()
        self._make_folder()
        wants_disk = any(fault.kind is Kind.FULL_DISK for fault in self._scenario.faults)
        with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as temporary:
            self._temporary = Path(temporary)
            try:
                has_disk = wants_disk and self._faults.mount()
                try:
                    self._lived_through()
                    self._judge()
                except Exception as problem:  # what cannot be judged is not right
                    self._outcome.problems.append(f"not judged: {type(problem).__name__}: {problem}")
                if has_disk and self._outcome.problems:  # what is wrong can be looked at afterwards
                    shutil.copytree(self._out, self._folder / "kept")
            finally:
                for one in marked(self._mark):
                    one.tell(signal.SIGKILL)
                self._faults.end()
        self._outcome.seconds = time.monotonic() - began_s
        return self._outcome

    def _make_folder(self) -> None:
        """In the place of an earlier trial's, and of nothing else."""
        drawn = self._folder / "drawn.json"
        if drawn.exists():
            self._faults.unmount()  # one that was killed has left it
            shutil.rmtree(self._folder)
        elif self._folder.exists():
            raise InputError(f"{self._folder}: there already, and not of a trial; give another --out")
        self._folder.mkdir(parents=True)
        drawn.write_text(json.dumps(asdict(self._scenario), indent=1, default=str))
        self._rates.write_text(f"{RATE}\n" * INPUT_S)

    # --- the run

    def _command(self) -> list[str]:
        scenario = self._scenario
        return [
            *(sys.executable, "-m", "penstock", "run", NAME, "--out", str(self._out), "--until-done"),
            *("--rates", str(self._rates), "--force-scaling", "--interval", f"{_INTERVAL_S:g}"),
            *("--joined" if scenario.joined else "--apart", "--protocol", scenario.protocol.value),
            *("--max-replicas", str(scenario.max_replicas), "--seed", str(scenario.seed)),
        ]

    def _environment(self) -> Mapping[str, str]:
        places = [str(Path(inside.__file__).parent), os.environ.get("PYTHONPATH", "")]
        return {
            **os.environ,
            MARK: self._mark,
            "PENSTOCK_CHAOS_INSIDE": str(self._folder / INFLUENCE),
            "PYTHONPATH": os.pathsep.join(place for place in places if place),
            "TMPDIR": str(self._temporary),
        }

    def _lived_through(self) -> None:
        """Start the driver, and again while it ends for a reason that was given to it."""
        while not self._outcome.problems:
            self._outcome.starts += 1
            self._excused = [_ANY_REASON] if self._faults.is_full else []
            self._told = self._killed = False
            self._end_second()
            status, said = self._one_life()
            if "Traceback" in said:
                self._outcome.problems.append(f"a traceback: {_last_line(said)}")
            if status == 0 and self._is_finished():
                return
            self._outcome.problems += self._objections(status, said)
            if self._outcome.starts == _STARTS:
                self._outcome.problems.append(f"started {_STARTS} times, and not through")

    def _one_life(self) -> tuple[int, str]:
        errors = self._folder / f"errors-{self._outcome.starts}.txt"
        with errors.open("wb") as output:
            driver = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=output,
                env=self._environment(),
                cwd=self._folder,
            )
        progress, since_s = self._published(), time.monotonic()
        while driver.poll() is None:
            time.sleep(_POLL_S)
            self._faults.over_now()
            self._hear_second()
            self._happen(driver)
            now = self._published()
            if now != progress:
                progress, since_s = now, time.monotonic()
            elif time.monotonic() - since_s > _STUCK_S:
                self._outcome.problems.append(f"nothing more came for {_STUCK_S:g} s")
                driver.kill()
        return driver.wait(), errors.read_text(errors="replace")

    def _objections(self, status: int, said: str) -> list[str]:
        """To how a driver has ended before all was done."""
        last = _last_line(said)
        if self._killed and status == -signal.SIGKILL:
            return []
        if self._told and status in (0, -signal.SIGTERM):  # at once, where there was nothing to report yet
            return []
        if status == 1 and any(last.startswith("penstock: ") and why in last for why in self._excused):
            return []
        return [f"it ended with status {status}: {last}"]

    def _is_finished(self) -> bool:
        try:
            return bool(json.loads((self._out / "summary.json").read_text())["finished"])
        except (OSError, ValueError):
            return False

    def _published(self) -> tuple[int, ...]:
        """The latest batch of every stream there is."""
        latest = []
        for name in (SOURCE, *_CHAINS):
            with suppress(Exception):  # being written, or removed by now
                last = self._log(name).last()
                latest.append(0 if last is None else last.number)
        return tuple(latest)

    def _log(self, stream: str) -> StreamLog:
        return StreamLog(self._out / "work" / "streams" / stream)

    def _share_fed(self) -> float:
        with suppress(Exception):  # being written, or removed by now
            last = self._log(SOURCE).last()
            return 0.0 if last is None else last.epoch / (INPUT_S * RATE)
        return 0.0

    # --- what happens to it

    def _happen(self, driver: "subprocess.Popen[bytes]") -> None:
        if not self._due:
            return
        fault, now_s = self._due[0], time.monotonic()
        if self._share_fed() < fault.share:
            return
        since_s = self._fed_s.setdefault(fault.share, now_s)
        if now_s - since_s < fault.after_s:
            return
        self._due.pop(0)
        second = fault.kind is Kind.SECOND_CONTROLLER
        done = self._second() if second else self._faults.carry_out(fault, driver.pid)
        if done is None:
            self._outcome.left_out.append(fault.kind.value)
            return
        text = f"{done} when {100 * self._share_fed():.0f} % was fed"
        self._outcome.happened.append(text)
        self._say(f"seed {self._scenario.seed}: {text}")
        if fault.kind in MAY_END_IT:
            self._excused.append(MAY_END_IT[fault.kind])
        self._told |= fault.kind is Kind.END_DRIVER
        self._killed |= fault.kind is Kind.KILL_DRIVER

    def _second(self) -> str | None:
        """The same command beside it; one at a time."""
        if self._rival is not None or not (self._out / "journal.jsonl").exists():
            return None
        with (self._folder / "second.txt").open("wb") as output:
            self._rival = subprocess.Popen(
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=output,
                env=self._environment(),
                cwd=self._folder,
            )
        return Kind.SECOND_CONTROLLER.value

    def _end_second(self) -> None:
        """It may be the one that has the folder, where the first was killed before it could refuse it."""
        with suppress(subprocess.TimeoutExpired):
            if self._rival is not None:
                self._rival.wait(_GONE_S)
        if self._rival is not None and self._rival.poll() is None:
            self._rival.kill()
            self._rival.wait()
            self._rival = None
        self._hear_second()

    def _hear_second(self, within_s: float = 0.0) -> None:
        """It has to be refused in one line that names the first, or that says that all is done."""
        if self._rival is None:
            return
        try:
            status = self._rival.wait(within_s)
        except subprocess.TimeoutExpired:
            if within_s:
                self._outcome.problems.append(f"a second controller goes on after {within_s:g} s")
            return
        said = (self._folder / "second.txt").read_text(errors="replace").strip()
        refused = "in use by another run" in said or "holds a finished run" in said
        if status != 2 or not refused or "\n" in said:
            self._outcome.problems.append(f"a second controller ended with status {status}: {said[-300:]}")
        self._rival = None

    # --- what came of it

    def _judge(self) -> None:
        problems = self._outcome.problems
        self._outcome.left_out += [f"{fault.kind.value}, due after the end" for fault in self._due]
        self._hear_second(within_s=_GONE_S)
        if problems:
            return
        problems += self._left()
        problems += books.wrong_results(books.read_back(self._out / "results" / "books.csv"), INPUT_S * RATE)
        problems += books.wrong_replay(self._out / "journal.jsonl")
        self._outcome.changes = books.changes_of(self._out / "journal.jsonl")
        self._faults.over()
        problems += books.left_over(self._out, self._temporary)

    def _left(self) -> list[str]:
        """Processes that are still there a while after the end; with them go their ports."""
        deadline_s = time.monotonic() + _GONE_S
        while there := marked(self._mark):
            if time.monotonic() > deadline_s:
                return [f"{len(there)} processes left: {' '.join(there[0].words)[:200]}"]
            time.sleep(_POLL_S)
        while any(self._temporary.iterdir()) and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
        return []


def _last_line(said: str) -> str:
    return (said.strip().splitlines() or [""])[-1]
