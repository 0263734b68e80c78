"""What a crash has cut off, from the steps in the journal."""

from penstock.reconfigure.interrupted import interrupted
from penstock.reconfigure.words import (
    AcquireNode,
    Commands,
    Copied,
    CopyCheckpoint,
    Elapsed,
    Event,
    NodeReady,
    Repartitioned,
    RepartitionState,
    Replica,
    RestoreCheckpoint,
    Running,
    StartQuery,
    Stopped,
    StopQuery,
)

NODE = NodeReady(ticket=1, replica=Replica(name="new", node_type=0), at_s=2.0)
CHANGE: list[tuple[Event, Commands]] = [
    (Elapsed(at_s=1.0), (AcquireNode(ticket=1, node_type=0),)),
    (NODE, (StopQuery(),)),
    (Stopped(at_s=3.0), (CopyCheckpoint(),)),
    (Copied(at_s=4.0), (RepartitionState(partitions=8),)),
    (Repartitioned(at_s=5.0), (StartQuery(),)),
    (Running(at_s=6.0), ()),
]


def test_a_change_is_gone_on_with_from_its_last_command() -> None:
    found = [interrupted(("count", *step) for step in CHANGE[:cut]) for cut in range(len(CHANGE) + 1)]
    assert found == [
        {},
        {},
        {"count": StopQuery()},
        {"count": CopyCheckpoint()},
        {"count": RepartitionState(partitions=8)},
        {"count": StartQuery()},
        {},
    ]


def test_operators_are_told_apart() -> None:
    back: tuple[Event, Commands] = (Stopped(at_s=9.0), (RestoreCheckpoint(),))
    steps = [("rank", *step) for step in CHANGE[:4]]
    assert interrupted([*steps, ("count", *back)]) == {
        "rank": RepartitionState(partitions=8),
        "count": RestoreCheckpoint(),
    }
