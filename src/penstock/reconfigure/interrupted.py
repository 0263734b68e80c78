"""Where a crash has cut a change off, from the steps that were written down before they were done."""

from collections.abc import Iterable

from penstock.reconfigure.words import (
    Command,
    Commands,
    CopyCheckpoint,
    Event,
    RepartitionState,
    RestoreCheckpoint,
    Running,
    StartQuery,
    StopQuery,
)


def interrupted(steps: Iterable[tuple[str, Event, Commands]]) -> dict[str, Command]:
    """By operator, the last command about its query or checkpoint that may not have come to its end.

    It may also have: whoever goes on from it does what has been done already without harm.
    """
    last: dict[str, Command] = {}
    for operator, event, commands in steps:
        if isinstance(event, Running):
            last.pop(operator, None)
        for command in commands:
            match command:
                case StopQuery() | CopyCheckpoint() | RepartitionState() | RestoreCheckpoint() | StartQuery():
                    last[operator] = command
                case _:
                    pass
    return last
