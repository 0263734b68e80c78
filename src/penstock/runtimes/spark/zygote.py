"""A process that has everything loaded and forks others off, for whoever asks at its socket.

Loading the libraries of a Python worker takes most of a second of CPU. Executors start just when there is
none to spare, several at a time, and all of them load the same. Here one process of the machine loads it,
and the Python of every executor is a fork of it, which shares its memory too.
"""

import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_LARGEST_REQUEST = 1 << 20  # bytes: the environment of a process
_STANDARD = (0, 1, 2)  # input, output and errors
_READY = b"1"
_PATIENCE_S = 5.0  # with somebody who connects and says nothing


def serve(place: Path, forked: Callable[[], object]) -> None:
    """Listen at this place for ever; every process forked off does what `forked` says, and ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()
        while True:
            asking, _ = listening.accept()
            with asking, suppress(OSError, ValueError):  # who asks may have died meanwhile
                asking.settimeout(_PATIENCE_S)
                words, files, _, _ = socket.recv_fds(asking, _LARGEST_REQUEST, len(_STANDARD))
                request = json.loads(words)
                if os.fork() == 0:
                    listening.close()
                    _become(request["environment"], request["folder"], files, asking, forked)
                for file in files:
                    os.close(file)


def _become(
    environment: dict[str, str],
    folder: str,
    files: list[int],
    asking: socket.socket,
    forked: Callable[[], object],
) -> None:
    """As if the one who asks had been started here; it hears that we have ended when its connection does."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        for number, file in zip(_STANDARD, files, strict=True):
            os.dup2(file, number)
            os.close(file)
        asking.sendall(_READY)
        forked()
    except SystemExit:
        pass
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    finally:
        sys.stdout.flush()
        os._exit(0)


def let_fork(place: Path) -> bool:
    """Have a fork do our work, with our environment, folder and standard files, and wait for its end.

    False if nobody there does.
    """
    words = json.dumps({"environment": dict(os.environ), "folder": str(Path.cwd())}).encode()
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(place))
            socket.send_fds(connection, [words], _STANDARD)
            if connection.recv(1) != _READY:
                return False
            while connection.recv(1):
                pass
    except OSError:
        return False
    return True
