"""How commands end that have started others."""

import signal


def end_as_with_ctrl_c() -> None:
    """When told to end: not on the spot, for what was started would go on."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
