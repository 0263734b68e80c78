"""What the benchmarks of live runs make of what they measured."""

from collections.abc import Sequence

import pytest

from penstock.apps.paced.form import paced
from penstock.apps.registry import application_entry
from penstock.bench import attached, micro_batches, queries, reconfigurations, step
from penstock.bench.figure import Figure
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.live.record import Interval
from penstock.live.settings import controller_for
from penstock.perf.micro_batch import MicroBatches
from penstock.reconfigure.method import Method
from penstock.reconfigure.words import Change, Ending, NewReplica, Record
from penstock.runtimes.spark.cluster import ClusterError
from penstock.runtimes.spark.stream_log import Origins


def came(executor_s: float, task_s: float | None, outcome: Ending = Ending.DONE) -> Record:
    return Record(
        operator="lookup",
        method=Method.LIVE,
        change=Change(add=(NewReplica(node_type=0),)),
        outcome=outcome,
        granted_at_s=100.0,
        ended_at_s=130.0,
        node_ready_at_s=100.0 + executor_s,
        first_task_at_s=None if task_s is None else 100.0 + task_s,
        downtime_s=0.0,
        state_moved_bytes=None,
    )


def by_name(figures: Sequence[Figure]) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures}


def test_replicas_are_held_against_what_is_wanted_and_against_sparks_own_allocation() -> None:
    alone = [came(3.0, 7.0), came(2.0, 11.0), came(4.0, 8.0)]
    spare = [came(0.1, 2.5), came(0.1, 1.5), came(0.1, 3.0)]
    found = by_name(list(reconfigurations.figures(alone, spare, [2.0, 2.4, 3.0], 3)))
    shown = {name: (round(one.value, 3), one.ok) for name, one in found.items()}
    assert shown == {
        "a replica alone: grant to executor, median of 3": (3.0, True),
        "a replica alone: grant to executor, longest": (4.0, None),
        "a replica alone: grant to first task on tuples, median of 3": (8.0, True),
        "a replica alone: grant to first task on tuples, longest": (11.0, None),
        "with a spare: grant to first task on tuples, median of 3": (2.5, False),
        "with a spare: grant to first task on tuples, longest": (3.0, None),
        "Spark's dynamic allocation: asked to executor, median of 3": (2.4, None),
        "Spark's dynamic allocation: asked to executor, longest": (3.0, None),
        "an executor of ours over one of Spark's dynamic allocation": (1.25, False),
    }


def test_a_replica_that_did_not_come_is_missed() -> None:
    alone = [came(3.0, 7.0), came(1.0, 1.0, Ending.GAVE_UP), came(4.0, None)]
    found = by_name(list(reconfigurations.figures(alone, [], [], 3)))
    assert found["a replica alone: grant to executor, median of 2"].value == pytest.approx(3.5)
    assert found["a replica alone: grant to first task on tuples: measured"].value == 1
    assert found["a replica alone: grant to first task on tuples: measured"].ok is False
    assert found["with a spare: grant to first task on tuples: measured"].value == 0
    assert not any("over one of Spark's" in name for name in found)


BEGAN_S = 1_000.0


def interval(at_s: float, response_s: float | None, replicas: int = 1) -> Interval:
    lookup = OperatorObservation(
        operator="lookup",
        at_s=BEGAN_S + at_s,
        replicas=Replicas((replicas,)),
        arrival_rate=None,
        response_time_s=None,
        utilisation=None,
    )
    seen = ApplicationObservation(at_s=BEGAN_S + at_s, response_time_s=response_s, operators=(lookup,))
    return Interval(seen=seen, reasons=(), changed=())


def back(*intervals: Interval) -> float:
    """The load is high from second 45 to second 135."""
    figure = next(step.figures("a run", intervals, BEGAN_S, 5.0, 40.0))
    assert figure.ok is (figure.value <= 40)
    return figure.value


def test_a_run_is_inside_again_once_no_interval_is_outside_while_the_load_is_high() -> None:
    late_before, late_after = interval(30, 20.0), interval(140, 20.0)
    calm, late = interval(50, 1.0), interval(60, 9.0)
    assert back(late_before, calm, interval(130, 2.0), late_after) == 0
    assert back(calm, late, interval(65, 4.0), interval(130, 2.0), late_after) == 15
    assert back(calm, late, interval(65, 4.0), interval(100, 6.0), interval(130, 2.0)) == 55


def test_an_interval_in_which_nothing_was_measured_is_not_inside() -> None:
    assert back(interval(50, 1.0), interval(60, None), interval(65, 4.0)) == 15


def test_a_run_that_never_comes_back_or_was_not_measured_is_outside_all_the_time() -> None:
    assert back(interval(50, 1.0), interval(130, 6.0)) == 90
    assert back(interval(30, 1.0)) == 90


def test_the_load_of_the_step_is_high_when_the_bench_says_so() -> None:
    rates = step.load().trace().rates
    assert [rates[second] for second in (0, 44, 45, 134, 135)] == [25, 25, 125, 125, 25]


def course(
    left: Sequence[tuple[float, Origins]], *records: Record, killed_s: Sequence[float] = (200.0,)
) -> queries.Course:
    """Nothing changes from second 40 to second 80; replicas are granted at 100."""
    return queries.Course(
        began_s=40.0,
        ended_s=80.0,
        cpu_s=3.0,
        records=records,
        killed_s=tuple(killed_s),
        replaced_after_s=tuple(1.5 for _ in killed_s),
        left=left,
    )


def took(at_s: float, response_s: float, tuples: int = 100) -> tuple[float, Origins]:
    return at_s, ((at_s - response_s, tuples),)


def test_usual_response_times_and_cpu_are_of_the_time_without_changes() -> None:
    found = queries.costs(course([took(39, 9), took(50, 1), took(60, 1), took(70, 2), took(80, 9)]))
    assert (found.p50_s, found.p95_s) == (1.0, 2.0)
    assert found.cpu_s_per_1000 == pytest.approx(10.0)  # 3 s for 300 tuples


def test_a_change_is_felt_by_what_leaves_until_it_is_over() -> None:
    left = [took(50, 1), took(99, 9), took(120, 3), took(131, 4), took(133, 9)]  # it ends at 130
    found = queries.costs(course(left, came(1.0, 4.0), came(1.0, 6.0), came(1.0, 2.0, Ending.GAVE_UP)))
    assert found.longest_in_change_s == 4.0
    assert found.first_tasks_s == (4.0, 6.0)


@pytest.mark.parametrize(
    ("after", "back_s"),
    [
        ([took(202, 4), took(219, 3)], 0.0),
        ([took(204, 6), took(206, 8), took(208, 4), took(221, 9)], 6.0),
        ([took(204, 1), took(206, 8)], 20.0),  # nobody knows when it would have been back
        ([took(199, 1), took(221, 1)], 20.0),  # nothing left in all that time
    ],
)
def test_an_application_is_back_once_nothing_that_took_too_long_leaves_it(
    after: list[tuple[float, Origins]], back_s: float
) -> None:
    assert queries.costs(course([took(50, 1), *after])).back_s == (back_s,)


def test_a_run_in_which_nothing_left_has_no_costs() -> None:
    with pytest.raises(ClusterError, match="nothing left the application in 40 s"):
        queries.costs(course([took(30, 1)]))


def test_both_forms_are_shown_with_their_ratio_and_failed_changes() -> None:
    joined = queries.costs(course([took(50, 1)], came(1.0, 4.0), came(1.0, 5.0), came(1.0, 6.0)))
    apart = queries.costs(course([took(50, 4)], came(1.0, 4.0), came(1.0, None), came(1.0, 5.0)))
    found = by_name(list(queries.figures("paced", joined, apart)))
    assert found["paced, joined over apart: response time p50"].value == pytest.approx(0.25)
    assert found["paced, joined: grant to first task, median of 3"].value == pytest.approx(5.0)
    assert found["paced, apart: changes that succeeded"].ok is False
    assert "paced, joined: changes that succeeded" not in found


def test_a_run_without_changes_and_kills_says_nothing_of_them() -> None:
    calm = queries.costs(course([took(50, 1)], killed_s=()))
    found = [one.name for one in queries.figures("paced", calm, calm)]
    assert len(found) == 3 * 3
    assert not any("change" in name or "kill" in name for name in found)


TRUE = MicroBatches(fixed_s=0.2, tuple_s=0.02, trigger_s=0.5)


def measured_batches(rate: float, replicas: int, *, slower: float = 1.0) -> micro_batches.Measured:
    """Three intervals of 3 s as the model has them, response times a little or much longer."""
    app = paced(application_entry("lookups").graph(4), objective=Objective(response_time_s=5.0))
    batch_s = TRUE.batch_s(rate, replicas)

    def one(name: str, at_s: float) -> OperatorObservation:
        return OperatorObservation(
            operator=name,
            at_s=at_s,
            replicas=Replicas((replicas,)),
            arrival_rate=rate,
            response_time_s=slower * TRUE.response_time_s(rate, replicas),
            utilisation=0.5,
            service_time_s=0.02,
            service_variance_s2=0.0002,
            batch_s=batch_s,
            batch_tuples=rate * max(batch_s, 0.5),
        )

    seen = [
        ApplicationObservation(
            at_s=at_s,
            response_time_s=None,
            operators=(one("lookup", at_s), one("score", at_s)),
            source_rate=rate,
        )
        for at_s in (3.0, 6.0, 9.0)
    ]
    point = micro_batches.Point(rate, replicas)
    return micro_batches.measured_at(point, controller_for(app, interval_s=3.0), 0.5, seen)


def test_what_was_measured_at_one_point_predicts_another() -> None:
    """.2 + .02 x 35 x .5 = .55 s is longer than the trigger: T = .2 / .3, R = 1 s; M/G/1: .02 + .035 s."""
    known = measured_batches(20.0, 1)
    assert (known.rate, known.response_time_s) == pytest.approx((20.0, 0.25 + 0.4))
    found = micro_batches.predicted(known, measured_batches(140.0, 4, slower=1.25))
    assert (found.measured_s, found.predicted_s) == pytest.approx((1.25, 1.0))
    assert found.error_pct == pytest.approx(-20.0)
    assert found.queue_s == pytest.approx(0.02 + 0.7 / 0.3 * 0.75 * 0.02)
    shown = by_name(list(micro_batches.figures(found)))
    assert shown["140 tuples/s on 4: error of micro-batches"].ok is True
    late = micro_batches.predicted(known, measured_batches(140.0, 4, slower=1.5))
    assert by_name(list(micro_batches.figures(late)))["140 tuples/s on 4: error of micro-batches"].ok is False


def test_a_point_at_which_nothing_was_measured_is_named() -> None:
    app = paced(application_entry("lookups").graph(4), objective=Objective(response_time_s=5.0))
    with pytest.raises(InputError, match="20 tuples/s on 1: no micro-batch of 'lookup' ended"):
        micro_batches.measured_at(micro_batches.Point(20.0, 1), controller_for(app), 0.5, [])


def test_the_bench_of_attached_queries_says_first_how_busy_the_machine_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attached, "LocalCluster", None)  # there is no need to start one
    assert next(attached.run_attached(stage=print)).name == "machine load before"
