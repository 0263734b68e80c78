"""The tuned Application Manager beside a live run: a separate process tunes while decisions continue.

Observations are collected every round. When it is time, a job is started and the run continues;
every later round checks for an answer, and swaps it in before deciding. A job that
fails or takes too long changes nothing and leaves a note.
"""

import os
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Protocol

from penstock.control.journal import Header, Noted, Retuned, decoded, encoded
from penstock.control.ports import Journal
from penstock.control.spec import ControllerSpec
from penstock.domain.errors import InputError
from penstock.domain.observation import ApplicationObservation
from penstock.files import write_whole
from penstock.training.retuning import STAYS, Deciding, job_of, moved, swapped

MONITORED = 2_000  # latest intervals that make the model


class Tuner(Protocol):
    """Runs jobs elsewhere, one at a time. Nothing here waits."""

    def begin(self, job: ControllerSpec) -> None: ...

    def answer(self) -> Retuned | Noted | None:
        """The job's outcome; None while it is running. A failure is a note."""

    def stop(self) -> None:
        """Abandon the running job."""


class Retuning:
    """When to tune, and what to do with the outcome."""

    def __init__(
        self,
        tuner: Tuner,
        journal: Journal,
        *,
        least_s: float,
        period_s: float,
        limit_s: float,
        trigger_s: float = 0.0,
    ) -> None:
        self._tuner, self._journal = tuner, journal
        self._least_s, self._period_s, self._limit_s = least_s, period_s, limit_s
        self._trigger_s = trigger_s
        self._monitored: deque[ApplicationObservation] = deque(maxlen=MONITORED)
        self._tuned_for: ControllerSpec | None = None
        self._began_at_s: float | None = None  # of the running job
        self._ended_at_s: float | None = None  # of the last one

    def saw(self, seen: ApplicationObservation) -> None:
        self._monitored.append(seen)

    def resume(self, spec: ControllerSpec) -> None:
        """What was tuned before a restart holds until something has moved."""
        self._tuned_for = spec

    def between_rounds(self, now: Deciding, at_s: float) -> Deciding:
        """Who decides the next round."""
        if self._began_at_s is None:
            self._begin_if_due(now, at_s)
            return now
        answer = self._tuner.answer()
        if answer is None and at_s - self._began_at_s > self._limit_s:
            self._tuner.stop()
            answer = Noted(at_s=at_s, text=f"tuning took more than {self._limit_s:g} s: {STAYS}")
        if answer is None:
            return now
        self._began_at_s, self._ended_at_s = None, at_s
        if isinstance(answer, Retuned):
            try:
                entry, now = swapped(now, answer, at_s)
            except InputError as problem:
                self._note(at_s, f"tuning failed: {problem}: {STAYS}")
                return now
            self._journal.append(entry)
        else:
            self._note(at_s, answer.text)
        return now

    def stop(self) -> None:
        self._tuner.stop()

    def _begin_if_due(self, now: Deciding, at_s: float) -> None:
        if self._tuned_for is not None and self._ended_at_s is None:
            self._ended_at_s = at_s  # tuned before a restart: one period from now
        too_early = self._ended_at_s is not None and at_s - self._ended_at_s < self._period_s
        if too_early or not self._monitored or at_s - self._monitored[0].at_s < self._least_s:
            return
        try:
            job = job_of(now.spec, self._monitored, trigger_s=self._trigger_s)
        except InputError:
            return  # something was not measured yet: there is nothing to simulate
        why = "at the start" if self._tuned_for is None else moved(self._tuned_for, job)
        if not why:
            self._ended_at_s = at_s  # check again after another period
            return
        self._tuned_for = job
        self._note(at_s, f"tuning begins: {why}")
        try:
            self._tuner.begin(job)
        except (OSError, InputError) as problem:
            self._ended_at_s = at_s
            self._note(at_s, f"tuning failed: {problem}: {STAYS}")
            return
        self._began_at_s = at_s

    def _note(self, at_s: float, text: str) -> None:
        self._journal.append(Noted(at_s=at_s, text=text))


class TunerProcess:
    """`python -m penstock.live.tuner` at low priority; job and answer are files in a folder.

    Its standard input stays open as long as this process lives; it ends when that closes.
    """

    def __init__(self, folder: Path, own_policies: tuple[str, ...] = ()) -> None:
        """`own_policies` are those the process has to load, as `module:Class`."""
        self._folder, self._own_policies = folder, own_policies
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self, job: ControllerSpec) -> None:
        self.stop()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._answer.unlink(missing_ok=True)
        write_whole(self._folder / "job.json", encoded(Header(controller=job)))
        with (self._folder / "log.txt").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "penstock.live.tuner", str(self._folder), *self._own_policies],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "OMP_NUM_THREADS": "1",
                    "OPENBLAS_NUM_THREADS": "1",
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),  # where own policies are
                },
                start_new_session=True,  # Ctrl-C is for the run, which stops this process itself
            )

    def answer(self) -> Retuned | Noted | None:
        if self._process is None:
            return Noted(at_s=0.0, text=f"tuning failed: it was never started: {STAYS}")
        status = self._process.poll()
        if status is None:
            return None
        self.stop()
        if status != 0:
            lines = (self._folder / "log.txt").read_text(errors="replace").strip().splitlines()
            why = lines[-1] if lines else f"exit status {status}"
            return Noted(at_s=0.0, text=f"tuning failed: {why}: {STAYS}")
        try:
            entry = decoded(self._answer.read_text())
        except (OSError, InputError) as problem:
            return Noted(at_s=0.0, text=f"tuning failed: {problem}: {STAYS}")
        if not isinstance(entry, Retuned | Noted):
            return Noted(at_s=0.0, text=f"tuning failed: it answered {type(entry).__name__}: {STAYS}")
        return entry

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()

    @property
    def _answer(self) -> Path:
        return self._folder / "answer.json"
