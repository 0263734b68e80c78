"""What a replayer feeds in: tuple number n, for any n, so that a restarted one continues where it was."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyarrow import Table


class Tuples(Protocol):
    """A stream of tuples by number."""

    @property
    def total(self) -> int | None:
        """How many there are; None when they never run out."""

    def table(self, first: int, count: int, *, entered_s: float) -> "Table":
        """So many tuples from number `first` on, as rows of the source."""

    def end(self, number: int, *, entered_s: float) -> "Table":
        """Rows that tell the application that nothing follows; there may be none."""
