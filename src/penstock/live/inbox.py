"""Orders from a person to a running controller: small files in the run folder, each carried out once."""

import json
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from penstock.control.orders import Lift, Order, Override, Pause, Resume
from penstock.control.plain_data import from_plain, parsed_json, to_plain
from penstock.domain.errors import InputError
from penstock.files import content_of, write_whole

ORDERS = "orders"  # within a run's work folder
_KINDS: dict[str, type[Pause] | type[Resume] | type[Override] | type[Lift]] = {
    "pause": Pause,
    "resume": Resume,
    "override": Override,
    "lift": Lift,
}


def give(folder: Path, order: Order) -> None:
    """Leave an order for the controller running there; it takes effect at the next interval."""
    folder.mkdir(parents=True, exist_ok=True)
    kind = next(name for name, one in _KINDS.items() if isinstance(order, one))
    text = json.dumps({"kind": kind, "order": to_plain(order, type(order))})
    # Names sort by time, so that orders are carried out in the order they were given.
    write_whole(folder / f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.json", text)


def pending(folder: Path) -> dict[Path, Order | None]:
    """Orders to carry out now, in the order they were given; None for a file that is not an order."""
    found: dict[Path, Order | None] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            said = parsed_json(content_of(path))
            found[path] = from_plain(said["order"], _KINDS[said["kind"]])
        except (OSError, ValueError, KeyError, TypeError, InputError):
            found[path] = None
    return found


def obeyed(orders: Iterable[Path]) -> None:
    """Remove orders that are in the journal."""
    for path in orders:
        with suppress(OSError):  # a folder, for example, which is not an order
            path.unlink(missing_ok=True)
