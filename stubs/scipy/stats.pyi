from collections.abc import Sequence
from typing import Protocol

class _Tested(Protocol):
    pvalue: float

def f_oneway(*samples: Sequence[float]) -> _Tested: ...
