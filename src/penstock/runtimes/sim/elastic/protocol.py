"""How keys move from one replica to another while tuples flow (De Matteis 2017, secs. 4.2 and 5.2.2)."""

from enum import IntEnum


class Protocol(IntEnum):
    """What waits for the state of a key that moves."""

    MP = 0  # the tuples of that key, in a buffer of the replica it comes to
    R_BLK = 1  # the replica it comes to, with all its tuples
    S_BLK = 2  # the tuples of that key, in a buffer of the splitter, which later empties it at one go
