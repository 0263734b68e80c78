"""How long everything takes that is not the work on a tuple."""

from dataclasses import dataclass, fields
from math import isfinite

from penstock.domain.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds on a multicore; the paper prints none of them, so all are assumed.

    They do not change with the frequency: they are bound by memory and by queues.
    """

    split_s: float = 4e-7  # receive a tuple and push it; the splitter of the paper keeps up with 6e5 tuples/s
    merge_s: float = 2e-7  # per result
    insert_ticks: float = 1000.0  # a tuple that only enters its window
    message_s: float = 1e-6  # the splitter, per migration message
    save_s: float = 2e-6  # the old replica, per key: references to a window, not copies
    acquire_s: float = 1e-5  # the new replica, per key: the 64 kB window is in another core's cache
    transfer_s: float = 0.0  # from saved until it can be acquired, nobody's work; memory is shared
    dequeue_s: float = 4e-7  # the splitter under S-BLK, per tuple it kept

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (isfinite(value) and value >= 0):
                raise InputError(f"{field.name}={value}; a cost is a number from 0 up")
