"""How commands end that have started others."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ending_as_with_ctrl_c() -> Iterator[None]:
    """When told to end meanwhile: not on the spot, for what was started would go on."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
