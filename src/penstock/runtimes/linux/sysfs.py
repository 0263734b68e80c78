"""The tree in which Linux shows its devices: read within it, and written in four files only."""

import os
import re
from dataclasses import dataclass
from errno import EPERM, EXDEV
from pathlib import Path

_MAY_BE_WRITTEN = re.compile(
    r"devices/system/cpu/cpufreq/policy\d+/scaling_(governor|min_freq|max_freq|setspeed)"
)


@dataclass(frozen=True, slots=True)
class Absent:
    """This machine does not have it, or does not show it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Sysfs:
    """A tree like /sys. Links within it are followed, links out of it are errors."""

    root: Path = Path("/sys")

    def read(self, path: str) -> str:
        """One value, without the end of its line."""
        return self._inside(path).read_text(encoding="utf-8", errors="replace").strip()

    def read_if_there(self, path: str) -> str | None:
        """None where the kernel or the driver has no such file, or does not let it be read."""
        try:
            return self.read(path)
        except OSError:
            return None

    def names(self, directory: str, pattern: re.Pattern[str]) -> tuple[str, ...]:
        """What a directory contains that is named like this; nothing where there is no such directory."""
        try:
            found = [one.name for one in self._inside(directory).iterdir()]
        except FileNotFoundError:
            return ()
        return tuple(sorted((name for name in found if pattern.fullmatch(name)), key=_by_number))

    def write(self, path: str, value: str) -> None:
        """One value, in one call, as the kernel wants it; never a new file."""
        target = self._inside(path)
        if not _MAY_BE_WRITTEN.fullmatch(str(target.relative_to(self.root.resolve()))):
            raise PermissionError(EPERM, "not a file that Penstock writes", str(target))
        file = os.open(target, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.write(file, f"{value}\n".encode())
        except OSError as problem:  # a value the kernel refuses; the error does not say in which file
            raise OSError(problem.errno, problem.strerror, str(target)) from problem
        finally:
            os.close(file)

    def _inside(self, path: str) -> Path:
        target = (self.root / path).resolve(strict=True)
        if not target.is_relative_to(self.root.resolve()):
            raise OSError(EXDEV, f"leads out of {self.root}", str(self.root / path))
        return target


def _by_number(name: str) -> list[tuple[int, str]]:
    """policy2 before policy10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def reason_of(problem: OSError | ValueError) -> str:
    """What went wrong, in a few words."""
    strerror = problem.strerror if isinstance(problem, OSError) else None
    return strerror or str(problem)
