"""A clock that begins as the one on the wall and never jumps: for what is decided, and when.

What executors, feeders and queries stamp has the time on the wall; such stamps are compared with that.
"""

import time

_BEGAN_S = time.time() - time.monotonic()


def now_s() -> float:
    return _BEGAN_S + time.monotonic()
