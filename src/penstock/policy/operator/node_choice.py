"""How a policy made for identical nodes copes with several types (Russo 2023, sec. 6.2.1)."""

from enum import Enum

import numpy as np

from penstock.compiled import Floats


class NodeChoice(Enum):
    """The one node type a homogeneous policy uses."""

    CHEAPEST = "c"
    FASTEST = "s"
    FIRST = "0"

    def pick(self, *, speedup: Floats, price: Floats) -> int:
        if self is NodeChoice.CHEAPEST:
            return int(np.argmin(price))
        if self is NodeChoice.FASTEST:
            return int(np.argmax(speedup))
        return 0
