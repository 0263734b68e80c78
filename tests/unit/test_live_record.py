"""What is left of a live run: figures that leave nothing out."""

from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.live.record import Interval, Summary, summary


def of(
    *,
    done: list[tuple[float, int]],
    unfinished: list[tuple[float, int]],
    intervals: list[Interval] | None = None,
) -> Summary:
    return summary(
        application="a",
        policy="p",
        finished=True,
        objective_s=5.0,
        intervals=intervals or [],
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


def interval(at_s: float, *replicas: int) -> Interval:
    operators = tuple(
        OperatorObservation(
            operator=f"o{number}",
            at_s=at_s,
            replicas=Replicas((count,)),
            arrival_rate=None,
            response_time_s=None,
            utilisation=None,
        )
        for number, count in enumerate(replicas)
    )
    seen = ApplicationObservation(at_s=at_s, response_time_s=None, operators=operators)
    return Interval(seen=seen, reasons=(), changed=())


def test_changes_of_replicas_count_whoever_made_them() -> None:
    seen = [interval(5, 1, 1), interval(10, 1, 1), interval(15, 4, 2), interval(20, 3, 2), interval(25, 3, 2)]
    figures = of(done=[], unfinished=[], intervals=seen)
    assert figures.replica_changes == 3  # two operators at once, then one of them again
    assert figures.reconfigurations == 0
    assert figures.replica_seconds == 5 * (2 + 2 + 6 + 5 + 5)
