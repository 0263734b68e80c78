"""Whether an answer to bad input is a good one."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from unittest.mock import patch

from penstock.cli.app import main
from rubbish.gates import Accepted
from rubbish.inputs import Given, files, given

LONGEST_S = 10.0
_IN_MEMORY = "/dev/shm"  # a disk would take longer than everything else
LONGEST_LINE = 2000  # characters: an error is read by people
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}$")
_Files = Mapping[str, bytes | str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command did."""

    given: Given
    status: int | None  # None: accepted, and not carried out
    out: str
    err: str
    took_s: float  # of the processor: others may use it, too
    broke: str = ""  # the traceback
    before: _Files
    after: _Files

    @property
    def faults(self) -> list[str]:
        """What is wrong with it; nothing where it is as it should be."""
        found = [self.broke] if self.broke else []
        if self.took_s > LONGEST_S:
            found.append(f"took {self.took_s:.1f} s")
        if "out of memory" in self.err:
            found.append("took too much memory")
        if self.broke or self.status is None:
            return found
        if self.status not in (0, 1, 2):
            found.append(f"exit status {self.status}")
        return [*found, *self._said(), *self._wrote()]

    def _said(self) -> Iterator[str]:
        if "Traceback" in self.err or "Warning:" in self.err:
            yield f"standard error: {self.err[:2000]}"
        if self.status == 0:
            return
        differs = "replay" in self.given.words and self.status == 1 and bool(self.out)  # is an answer
        if differs or (self.status == 2 and self.err.startswith("Usage:") and not self.out):
            return
        told = self.err.removesuffix("\n").split("\n")
        if self.given.words[:1] in (("run",), ("compare",)):  # which tell on standard error how far they are
            told = told[-1:] if all(not one.startswith("penstock: ") for one in told[:-1]) else told
        line = "\n".join(told)
        if not line.startswith("penstock: ") or not line.isprintable() or len(line) > LONGEST_LINE:
            yield f"not one clear line on standard error: {self.err[:2000]!r} ({len(line):,} characters)"
        elif len(line) < len("penstock: ") + 8:
            yield f"says nothing: {line!r}"
        if self.out and not (
            self.status == 1 and "--json" in self.given.words and whole(".json", self.out.encode())
        ):
            yield f"status {self.status}, and on standard output: {self.out[:500]!r}"

    def _wrote(self) -> Iterator[str]:
        for path in sorted(path for path in {*self.before, *self.after} if self._differs(path)):
            content = self.after.get(path)
            if _TEMPORARY.search(path):
                yield f"left behind: {path}"
            elif path not in self.after:
                yield f"removed: {path}"
            elif not whole(path, content):
                yield f"not whole: {path}: {content!r:.300}"
            elif self.status != 0 and not self._may_stay(path, content):
                yield f"status {self.status}, and yet {path} was written"

    def _may_stay(self, path: str, content: bytes | str | None) -> bool:
        """Locks, and the folders they are in; what `plan` writes down before it plans, whatever its name."""
        words = self.given.words
        if words[:1] == ("plan",):
            named = {after for before, after in pairwise(words) if before == "--write-lp"}
            named |= {word.partition("=")[2] for word in words if word.startswith("--write-lp=")}
            return content is not None and os.path.normpath(path) in map(os.path.normpath, named)
        locks = {"run": ("/owner.json",), "power": (".lock",)}
        mine = locks.get(next(iter(words), ""), ())
        return path.endswith(mine) if content is not None else bool(mine)

    def _differs(self, path: str) -> bool:
        there = path in self.before, path in self.after
        return there != (True, True) or self.before[path] != self.after[path]


def whole(path: str, content: bytes | str | None) -> bool:
    """Whether a file that a command wrote is complete."""
    if not isinstance(content, bytes):
        return True  # a folder, or a link that was there
    text = content.decode("utf-8")
    match path.rpartition(".")[2]:
        case "json" if text.startswith("{"):
            return isinstance(json.loads(text), dict)
        case "html" if text.startswith("<"):
            return text.rstrip().endswith("</html>")
        case "lp":
            return text.rstrip().endswith("End")
        case "lock" | "json" if not content:  # a lock is a file with nothing in it
            return True
    return text.endswith("\n")


@contextmanager
def place() -> Iterator[None]:
    """An empty directory, the current one for a while."""
    before, made = (
        os.getcwd(),
        tempfile.mkdtemp(prefix="rubbish-", dir=_IN_MEMORY if os.path.isdir(_IN_MEMORY) else None),
    )
    os.chdir(made)
    try:
        yield
    finally:
        os.chdir(before)
        shutil.rmtree(made, ignore_errors=True)


def answer(seed: int) -> Answer:
    """What the command of this seed does in this process, which has closed the gates."""
    with place():
        made = given(seed)
        before = dict(files())
        # As in a process of its own: what cannot be encoded breaks on standard output only.
        out = io.TextIOWrapper(io.BytesIO(), "utf-8", "strict", write_through=True)
        err = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True)
        status, broke, began_s = None, "", time.process_time()
        with (
            redirect_stdout(out),
            redirect_stderr(err),
            patch("sys.argv", ["penstock", *made.words]),
            patch("sys.path", list(sys.path)),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("always")
            try:
                main()
            except SystemExit as ended:
                status = ended.code if isinstance(ended.code, int) else 0
            except Accepted:
                pass
            except BaseException:
                broke = traceback.format_exc(chain=False)
        took_s = time.process_time() - began_s
        return Answer(
            given=made,
            status=status,
            out=_text(out),
            err=_text(err),
            took_s=took_s,
            broke=broke,
            before=before,
            after=dict(files()),
        )


def tried(seed: int) -> Answer:
    """The answer; once more where it took long: a policy is compiled at its first use."""
    one = answer(seed)
    return answer(seed) if one.took_s > LONGEST_S else one


def _text(stream: io.TextIOWrapper) -> str:
    kept = stream.buffer
    assert isinstance(kept, io.BytesIO)
    return kept.getvalue().decode("utf-8")


def in_own_process(seed: int) -> tuple[int, str, str]:
    """The same, as a person would run it."""
    with place():
        words = given(seed).words
        ended = subprocess.run(
            [sys.executable, "-m", "penstock", *words], capture_output=True, check=False, timeout=120
        )
        return ended.returncode, ended.stdout.decode("utf-8"), ended.stderr.decode("utf-8")
