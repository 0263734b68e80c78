"""What feeds paced applications: numbers."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pyarrow import Table


class Ids:
    """Every tuple is its number."""

    total: int | None = None

    def table(self, first: int, count: int, *, entered_s: float) -> "Table":
        import pyarrow

        return pyarrow.table({"id": np.arange(first, first + count), "entered_s": np.full(count, entered_s)})

    def end(self, number: int, *, entered_s: float) -> "Table":
        return self.table(number, 0, entered_s=entered_s)
