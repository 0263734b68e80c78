"""What finished simulations of a reproduction measured, kept on disk: an interrupted one goes on from there.

A run is known by all it depends on: what is simulated, over which rates, what is measured of it, and the
sources of this package. A file written by other sources is not used, and replaced.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from inspect import getsource
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from penstock.control.plain_data import parsed_json
from penstock.domain.errors import InputError
from penstock.files import content_of
from penstock.simulation.play import Job, run_each
from penstock.simulation.result import SimulationResult

_SOURCES = "penstock sources"
# Parts of the package that have no say in what a simulation gives.
_ELSEWHERE = ("apps", "bench", "cli", "live", "papers", "reports", "testing")

T = TypeVar("T", bound=tuple[Any, ...])


class KeptRuns:
    """Finished runs; without a file they are forgotten with this object."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = Lock()  # runs end on several threads
        self._known = dict(_lines(path)) if path is not None else {}
        self._after = "\n"  # of a line that an earlier process may have left without its end
        self.used = 0  # runs that did not have to be made again

    def measured(
        self,
        jobs: Sequence[Job],
        kind: type[T],
        measure: Callable[[SimulationResult], T],
        *,
        threads: int,
        named: str = "",
        with_history: bool = False,
        done: Callable[[], None] = lambda: None,
    ) -> list[T]:
        """What `measure` makes of every run: a named tuple of numbers and tuples of numbers.

        `named` tells apart what one function measures differently, for instance at other slots.
        """
        how = f"{kind.__qualname__} {getsource(measure)} {named}"
        keys = [_key(job, how) for job in jobs]
        missing = [index for index, key in enumerate(keys) if key not in self._known]

        def keep(index: int, result: SimulationResult) -> None:
            self._keep(keys[missing[index]], measure(result))
            done()

        for _ in range(len(jobs) - len(missing)):
            self.used += 1
            done()
        run_each([jobs[index] for index in missing], keep, threads=threads, with_history=with_history)
        return [kind(*map(_value, self._known[key])) for key in keys]

    def once(self, named: str, kind: type[T], make: Callable[[], T]) -> T:
        """What `make` gives, a named tuple of numbers; `named` says all that it depends on.

        That includes the sources of papers and applications: a file knows only of the others.
        """
        key = hashlib.sha256(f"{kind.__qualname__} {named}".encode()).hexdigest()
        with self._lock:
            known = self._known.get(key)
            self.used += known is not None
        if known is not None:
            return kind(*map(_value, known))
        made = make()
        self._keep(key, made)
        return made

    def _keep(self, key: str, values: tuple[Any, ...]) -> None:
        with self._lock:
            self._known[key] = list(values)
            if self._path is None:
                return
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with open(self._path, "a", encoding="utf-8") as file:
                    before = self._after if file.tell() else json.dumps({_SOURCES: _sources()}) + "\n"
                    file.write(f"{before}{json.dumps([key, values])}\n")
                    self._after = ""
            except OSError as problem:
                raise InputError(f"{self._path}: cannot write: {problem.strerror or problem}") from problem


def _value(value: Any) -> Any:
    return tuple(map(_value, value)) if isinstance(value, list | tuple) else value


def _key(job: Job, measure: str) -> str:
    spec, rates, training = job
    digest = hashlib.sha256(f"{measure} {spec!r}".encode())
    digest.update(rates.tobytes())
    digest.update(b"" if training is None else training.tobytes())
    return digest.hexdigest()


@cache
def _sources() -> str:
    """A name for all that decides what a simulation gives."""
    digest = hashlib.sha256()
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in _ELSEWHERE:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _lines(path: Path) -> Iterator[tuple[str, list[Any]]]:
    """Runs of an earlier process, if its sources were these; a last line that was cut off is left out."""
    try:
        lines = content_of(path).decode("utf-8").split("\n")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path}: cannot read runs of an earlier reproduction: {problem}") from problem
    header = _parsed(lines[0])
    if not isinstance(header, dict) or _SOURCES not in header:
        raise InputError(f"{path}: holds something else than runs of an earlier reproduction; remove it")
    if header[_SOURCES] != _sources():
        path.unlink()
        return
    for line in lines[1:]:
        match _parsed(line):
            case [str(key), list(values)]:
                yield key, values


def _parsed(line: str) -> Any:
    try:
        return parsed_json(line)
    except ValueError:
        return None
