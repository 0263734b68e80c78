"""How a policy made for identical nodes copes with several types (Russo 2023, sec. 6.2.1)."""

from enum import Enum

import numpy as np

from penstock.compiled import Floats


class NodeChoice(Enum):
    """The one node type a homogeneous policy uses."""

    CHEAPEST = "c"
    FASTEST = "s"
    FIRST = "0"

    @classmethod
    def variants(cls, family: str, *choices: "NodeChoice") -> dict[str, dict[str, "NodeChoice"]]:
        """Names of a family of policies, one for each choice (all if none is named): `drs-c`, `drs-s`, ..."""
        return {f"{family}-{choice.value}": {"node_choice": choice} for choice in choices or cls}

    def pick(self, *, speedup: Floats, price: Floats) -> int:
        if self is NodeChoice.CHEAPEST:
            return int(np.argmin(price))
        if self is NodeChoice.FASTEST:
            return int(np.argmax(speedup))
        return 0
