"""What is left of a live run: figures that leave nothing out."""

from penstock.domain.infrastructure import NodeType
from penstock.live.record import Summary, summary


def of(*, done: list[tuple[float, int]], unfinished: list[tuple[float, int]]) -> Summary:
    return summary(
        application="a",
        policy="p",
        finished=True,
        objective_s=5.0,
        intervals=[],
        response_times=done,
        unfinished=unfinished,
        records=[],
        node_types=[NodeType(name="n", speedup=1.0, price=1.0)],
        began_s=0.0,
        seconds=60.0,
    )


def test_tuples_still_waiting_at_the_end_count_in_response_times_and_are_told() -> None:
    calm = of(done=[(1.0, 100)], unfinished=[])
    assert (calm.response_time_p50_s, calm.response_time_p99_s, calm.unfinished) == (1.0, 1.0, 0)
    behind = of(done=[(1.0, 100)], unfinished=[(40.0, 300)])
    assert behind.tuples == 100
    assert behind.unfinished == 300
    assert (behind.response_time_p50_s, behind.response_time_p99_s) == (40.0, 40.0)
