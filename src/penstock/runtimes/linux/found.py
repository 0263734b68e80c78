"""What was found before frequencies were changed, on disk until it is restored: a kill -9 must not lose it.

One process at a time: it holds a lock that ends with it, however it ends. So a file without a holder of
the lock is what a process left behind that could not restore it.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from penstock.control.plain_data import parsed_json
from penstock.domain.errors import InputError
from penstock.files import content_of, write_whole

STATE_FILE = "frequency.json"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The settings of one policy as they were."""

    governor: str
    min_khz: int
    max_khz: int
    setspeed_khz: int | None  # only the governor `userspace` has one


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """What a process found and has not restored, by policy."""

    pid: int
    root: str
    boot: str | None
    policies: Mapping[str, Found]


class Keeper:
    """Keeps what was found in a directory."""

    def __init__(self, directory: Path, root: Path) -> None:
        self.path = directory / STATE_FILE
        self._root = str(root.resolve())
        self._lock: IO[str] | None = None

    def lock(self) -> None:
        """From now on this process may change frequencies, and no other with this directory."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = self.path.with_suffix(".lock").open("a", encoding="utf-8")
        except OSError as problem:
            raise InputError(
                f"{self.path.parent}: cannot keep there what is to be restored: {problem.strerror or problem}"
            ) from problem
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            lock.close()
            other = read_left_behind(self.path)
            who = "another process" if other is None else f"process {other.pid}"
            raise InputError(f"{who} holds the frequency ({self.path}); wait until it has ended") from problem
        self._lock = lock

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def save(self, found: Mapping[str, Found]) -> None:
        state = LeftBehind(os.getpid(), self._root, _boot(), found)
        write_whole(self.path, json.dumps(asdict(state), indent=2) + "\n")

    def left_behind(self) -> Mapping[str, Found]:
        """What there is to restore; nothing where the machine was started anew and has forgotten it, too."""
        left = read_left_behind(self.path)
        if left is None:
            return {}
        if left.root != self._root:
            raise InputError(f"{self.path}: is about {left.root}, not {self._root}; use another directory")
        if left.boot != _boot():
            self.forget()
            return {}
        return left.policies

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)


def _boot() -> str | None:
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None


def read_left_behind(path: Path) -> LeftBehind | None:
    """What a file says is to be restored; None where there is no file."""
    try:
        state = parsed_json(content_of(path))
        match state:
            case {"pid": int(pid), "root": str(root), "boot": str() | None as boot, "policies": dict(found)}:
                return LeftBehind(pid, root, boot, {name: _found(one) for name, one in found.items()})
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise InputError(f"{path}: cannot read: {problem.strerror or problem}") from problem
    except ValueError:
        pass
    raise InputError(f"{path}: not what Penstock writes there; look at it, and remove it")


def _found(value: object) -> Found:
    match value:
        case {
            "governor": str(governor),
            "min_khz": int(low),
            "max_khz": int(high),
            "setspeed_khz": int() | None as speed,
        }:
            return Found(governor=governor, min_khz=low, max_khz=high, setspeed_khz=speed)
    raise ValueError("not the settings of a policy")
