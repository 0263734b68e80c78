"""What a run has left behind, beside what it should have: in words, and none where all is right."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock.apps.ledger.books import Posted, posted
from penstock.control.build import build_controller
from penstock.control.journal import Reconfigured
from penstock.control.replay import replay
from penstock.domain.errors import InputError
from penstock.files import half_written
from penstock.journal_file import read_journal
from penstock.reconfigure.words import Ending
from penstock.runtimes.spark.stream_log import StreamLog

_NAMED = 3  # of many that are wrong


def wrong_results(found: Sequence[Posted], total: int) -> list[str]:
    """Tuple by tuple, and how often each has come."""
    wanted = {one.id: one for one in posted(total)}
    times = Counter(one.id for one in found)
    said = {
        "lost": [str(number) for number in wanted if not times[number]],
        "come more than once": [str(number) for number, count in times.items() if count > 1],
        "of nobody": [str(number) for number in times if number not in wanted],
        "not as they should be": [
            f"{one}, not {wanted[one.id]}" for one in found if one.id in wanted and one != wanted[one.id]
        ],
    }
    return [f"{len(which)} tuples {what}: {_some(which)}" for what, which in said.items() if which]


def read_back(file: Path) -> list[Posted]:
    """The results as a user finds them."""
    _, *lines = file.read_text(encoding="utf-8").splitlines()
    return [Posted(*map(int, line.split(","))) for line in lines]


def wrong_replay(journal: Path) -> list[str]:
    try:
        answer = replay(read_journal(journal), build_controller)
    except InputError as problem:
        return [f"the journal cannot be replayed: {problem}"]
    return [] if answer.difference is None else [f"replayed, the journal differs: {answer.difference}"]


def changes_of(journal: Path) -> int:
    """How many changes of replicas came to their end, by all drivers together."""
    records = (entry.record for entry in read_journal(journal) if isinstance(entry, Reconfigured))
    return sum(record.outcome is Ending.DONE for record in records)


def left_over(out: Path, temporary: Path) -> list[str]:
    """Files that nobody needs: half-written ones, those of trials, those that no batch names."""
    streams = [StreamLog(place) for place in sorted((out / "work" / "streams").iterdir())]
    unnamed = [str(path) for log in streams for path in _unnamed(log)]
    found = {
        "half written": [str(path) for path in half_written(out)],
        "that no batch names": unnamed,
        "of trials": [str(path) for path in (out / "work").glob("trial-*")],
        "of spares": [str(path) for path in (out / "work").glob("spares-*")],
        "of checkpoints": [
            str(path)
            for end in ("unfinished", "old")
            for path in (out / "work" / "checkpoints").glob(f"*.{end}")
        ],
        "temporary": [str(path) for path in sorted(temporary.rglob("*"))],
    }
    return [f"{len(which)} files left, {what}: {_some(which)}" for what, which in found.items() if which]


def _unnamed(log: StreamLog) -> Iterable[Path]:
    numbers = [int(path.stem) for path in (log.root / "batches").glob("*.json")]
    named = {file.name for number in numbers for file in log.batch(number).files}
    return (path for path in sorted((log.root / "data").iterdir()) if path.name not in named)


def _some(which: Sequence[str]) -> str:
    rest = len(which) - _NAMED
    return ", ".join(which[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
