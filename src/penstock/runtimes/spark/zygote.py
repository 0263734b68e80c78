"""A process that has everything loaded, and forks off others for clients that connect to its socket.

Loading the libraries of a Python worker takes most of a second of CPU. Executors start just when there is
none to spare, several at a time, and all of them load the same. Here one process of the machine loads it,
and the Python of every executor is a fork of it, which shares its memory too.
"""

import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

_STANDARD = (0, 1, 2)  # input, output and errors
_LENGTH = 8  # bytes that say how long a request is
_CHUNK = 1 << 16
_READY = b"1"
_FOR_US_ALONE = 0o077  # the rights that others do not get
_PATIENCE_S = 5.0  # with a client that connects and says nothing, and with a zygote that does not answer


def serve(place: Path, forked: Callable[[], object]) -> NoReturn:
    """Listen at this place for ever; every process forked off does what `forked` says, and ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    with socket.socket(socket.AF_UNIX) as listening:
        before = os.umask(_FOR_US_ALONE)  # whoever connects has code run here
        listening.bind(str(place))
        listening.listen()
        os.umask(before)
        while True:
            client, _ = listening.accept()
            with client:
                files: list[int] = []
                try:
                    client.settimeout(_PATIENCE_S)
                    request = _received(client, files)
                    if os.fork() == 0:
                        listening.close()
                        _become(request, files, client, forked)
                except (OSError, ValueError, TypeError):  # the client has died, or talks rubbish
                    pass
                finally:
                    for file in files:
                        os.close(file)


def _received(client: socket.socket, files: list[int]) -> Mapping[str, Any]:
    words, received, _, _ = socket.recv_fds(client, _LENGTH, len(_STANDARD))
    files += received
    length = int.from_bytes(words, "big")
    said = b""
    while len(said) < length:
        more = client.recv(min(length - len(said), _CHUNK))
        if not more:
            raise ValueError("the request ends too soon")
        said += more
    return dict(json.loads(said))


def _become(
    request: Mapping[str, Any], files: list[int], client: socket.socket, forked: Callable[[], object]
) -> NoReturn:
    """As if the client had been started here; it hears of our end when its connection closes."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(request["environment"])
        time.tzset()
        sys.argv[:] = request["arguments"]
        os.chdir(request["folder"])
        for number, file in zip(_STANDARD, files, strict=True):
            os.dup2(file, number)
            os.close(file)
        client.settimeout(None)
        client.sendall(_READY)
        forked()
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def let_fork(place: Path) -> bool:
    """Have a fork do our work, with our environment, folder and standard files, and wait for its end.

    False if nobody there does.
    """
    try:
        request = {"environment": dict(os.environ), "arguments": sys.argv, "folder": str(Path.cwd())}
        words = json.dumps(request).encode()
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_PATIENCE_S)
            connection.connect(str(place))
            socket.send_fds(connection, [len(words).to_bytes(_LENGTH, "big")], _STANDARD)
            connection.sendall(words)
            if connection.recv(1) != _READY:
                return False
            connection.settimeout(None)
            while connection.recv(1):
                pass
    except OSError:
        return False
    return True
