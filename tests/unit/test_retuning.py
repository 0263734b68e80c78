"""Tuning beside a running application: decisions go on meanwhile, the swap happens once and replays."""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.apps.paced.form import paced
from penstock.compiled import read_only
from penstock.control.build import build_controller
from penstock.control.journal import (
    Entry,
    Header,
    Noted,
    Retuned,
    Ticked,
    encoded,
    latest_header,
    retuned_spec,
)
from penstock.control.replay import replay
from penstock.control.safety_settings import UNGUARDED
from penstock.control.saved import as_plain, saved
from penstock.control.spec import ControllerSpec, Manager, operator_specs
from penstock.domain.application import Operator, pipeline
from penstock.domain.decision import Decision, Scale
from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective, Weights
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Verdict
from penstock.journal_file import JournalFile, read_journal
from penstock.live.background_tuning import TunerProcess
from penstock.live.controlling import Controlling
from penstock.live.run import LiveRun
from penstock.live.settings import LiveSettings, controller_for
from penstock.policy.application.tuned import naive
from penstock.policy.registry import Level, entries
from penstock.runtimes.sim.graph import managed_operators, run_application
from penstock.training.retuning import _Monitored, configuration_of, is_tuned, job_of, moved, tuned

# At 100 tuples/s one replica of `second` is busy at .8: 8 / (1 - .8) = 40 ms (M/M/1), two make it
# 8 / (1 - .4^2) = 9.5 ms (M/M/2). So a bound of 50 ms wants one, a bound of 20 ms two.
GRAPH = pipeline(
    "two",
    Operator(name="first", service_time_s=0.001, service_scv=1.0, max_replicas=3),
    Operator(name="second", service_time_s=0.008, service_scv=1.0, max_replicas=3),
)
OBJECTIVE = Objective(response_time_s=0.1)
TIGHT = {"first": 0.08, "second": 0.02}
ONE = (NodeType(name="standard", speedup=1.0, price=1.0),)
MODEL_FREE = [
    name
    for name, one in entries(Level.APPLICATION).items()
    if not (one.traits.needs_model or one.traits.decides_itself)
]


def seen(
    at_s: float, *, rate: float = 100.0, service_s: float = 0.008, fixed_s: float | None = None
) -> ApplicationObservation:
    """On an engine of micro-batches with this fixed part, if there is one."""

    def one(name: str, mean_s: float) -> OperatorObservation:
        batch_s = None if fixed_s is None else fixed_s / (1 - rate * mean_s)
        return OperatorObservation(
            operator=name,
            at_s=at_s,
            replicas=Replicas((1,)),
            arrival_rate=rate,
            response_time_s=mean_s / (1 - min(rate * mean_s, 0.99)),
            utilisation=rate * mean_s,
            service_time_s=mean_s,
            service_variance_s2=mean_s**2,
            batch_s=batch_s,
            batch_tuples=None if batch_s is None else rate * batch_s,
        )

    operators = (one("first", 0.001), one("second", service_s))
    return ApplicationObservation(at_s=at_s, response_time_s=0.05, operators=operators, source_rate=rate)


def answer_to(job: ControllerSpec, bounds_s: dict[str, float]) -> Retuned:
    other = replace(
        job,
        operators=tuple(replace(one, bound_s=bounds_s[one.name]) for one in job.operators),
        weights=Weights(performance=0.5, resources=0.3, reconfiguration=0.2),
    )
    _, memory = build_controller(other)
    return Retuned(
        at_s=0.0,
        application=other.application,
        operators=other.operators,
        weights=other.weights,
        source_rates=other.source_rates,
        memory=as_plain(saved(memory)),
        reason="a trial",
    )


Answer = Callable[[ControllerSpec], Retuned | Noted]


class Slow:
    """Answers when asked for the so-manieth time; never, if that is None."""

    def __init__(self, after: int | None = 4, answer: Answer | None = None) -> None:
        self.after, self.answer_of = after, answer or (lambda job: answer_to(job, TIGHT))
        self.jobs: list[ControllerSpec] = []
        self.asked = 0
        self.stopped = 0

    def begin(self, job: ControllerSpec) -> None:
        self.jobs.append(job)
        self.asked = 0

    def answer(self) -> Retuned | Noted | None:
        self.asked += 1
        return self.answer_of(self.jobs[-1]) if self.after is not None and self.asked >= self.after else None

    def stop(self) -> None:
        self.stopped += 1


class Running:
    """The controller of a live run over what is given it to see, every five seconds."""

    def __init__(
        self,
        out: Path,
        tuner: Slow,
        *,
        at_s: float = 0.0,
        policy: str = "drs-c",
        application_policy: str = "tuned",
        advise: bool = False,
        max_nodes: int | None = None,
        **settings: Any,
    ) -> None:
        self.out, self.at_s = out, at_s
        self.load: dict[str, float] = {}
        self.said: list[tuple[str, ...]] = []
        app = paced(GRAPH, objective=OBJECTIVE)
        live = LiveRun(
            app,
            controller_for(
                app,
                policy=policy,
                application_policy=application_policy,
                warm_up_s=0.0,
                advise=advise,
                max_nodes=max_nodes,
            ),
            LiveSettings(out=out, **settings),
            feeder_of=lambda feeds: pytest.fail("nobody feeds here"),
        )
        self.control = Controlling(live.controller, live.settings, self, tuner)

    def observe(self) -> ApplicationObservation:
        self.at_s += 5.0
        return seen(self.at_s, **self.load)

    def apply(self, verdict: Verdict) -> None:
        """Replicas stay as they are: what is wanted is all that counts here."""

    def append(self, entry: Entry) -> None:
        with JournalFile(self.out / "journal.jsonl") as journal:
            journal.append(entry)

    def rounds(self, count: int, **load: float) -> "Running":
        self.load = load
        for _ in range(count):
            self.said.append(self.control.round(self, self).reasons)
        return self

    @property
    def entries(self) -> list[Entry]:
        return read_journal(self.out / "journal.jsonl")

    def of_second(self) -> list[Decision]:
        return [entry.plan.decisions["second"] for entry in self.entries if isinstance(entry, Ticked)]

    def notes(self, about: str) -> list[str]:
        return [e.text for e in self.entries if isinstance(e, Noted) and about in e.text]


def wants(decision: Decision) -> int:
    return decision.target.total if isinstance(decision, Scale) else 1


MEASURING = 7  # rounds of five seconds that make 30 s


def test_operators_decide_with_naive_shares_while_tuning_goes_on_and_with_the_tuned_ones_after(
    tmp_path: Path,
) -> None:
    tuner = Slow(after=4)
    run = Running(tmp_path, tuner).rounds(MEASURING + 10)
    naive_one = naive(GRAPH, OBJECTIVE)
    assert configuration_of(tuner.jobs[0]) == naive_one
    # The first round decides and begins the job; the tuner is asked in each after it, and answers the fourth.
    assert [wants(decision) for decision in run.of_second()] == [1] * 4 + [2] * 6
    assert len(tuner.jobs) == 1
    assert [index for index, reasons in enumerate(run.said) if "retuned" in reasons[0]] == [MEASURING + 4]
    (swap,) = [entry for entry in run.entries if isinstance(entry, Retuned)]
    place = run.entries.index(swap)
    before, after = run.entries[place - 1], run.entries[place + 1]
    assert isinstance(before, Ticked)
    assert isinstance(after, Ticked), "between two rounds"
    assert before.seen.at_s <= swap.at_s < after.seen.at_s == before.seen.at_s + 5.0
    latest = latest_header(run.entries)
    assert latest is not None
    assert configuration_of(latest.controller).bounds_s == TIGHT
    assert configuration_of(latest.controller).weights == Weights(
        performance=0.5, resources=0.3, reconfiguration=0.2
    )


def test_a_replay_reproduces_the_decisions_before_and_after_a_swap(tmp_path: Path) -> None:
    run = Running(tmp_path, Slow()).rounds(MEASURING + 10)
    answer = replay(run.entries, build_controller)
    assert (answer.ticks, answer.difference) == (10, None)
    unswapped = [entry for entry in run.entries if not isinstance(entry, Retuned)]
    different = replay(unswapped, build_controller).difference
    assert different is not None
    assert different.tick == 5


def failed(job: ControllerSpec) -> Noted:
    return Noted(at_s=0.0, text="tuning failed: out of memory: bounds and weights stay")


def test_a_tuning_that_fails_changes_nothing_and_is_noted(tmp_path: Path) -> None:
    run = Running(tmp_path, Slow(answer=failed)).rounds(MEASURING + 10)
    assert {wants(decision) for decision in run.of_second()} == {1}
    assert run.notes("out of memory") == ["tuning failed: out of memory: bounds and weights stay"]
    assert not [entry for entry in run.entries if isinstance(entry, Retuned)]
    assert replay(run.entries, build_controller).difference is None


def test_a_tuner_that_cannot_be_started_or_answers_nonsense_changes_nothing(tmp_path: Path) -> None:
    class Missing(Slow):
        def begin(self, job: ControllerSpec) -> None:
            raise OSError("no such program")

    def strange(job: ControllerSpec) -> Retuned:
        return replace(answer_to(job, TIGHT), memory={"arrays": {}, "state": {"schema": 99}})

    for name, tuner, why in (
        ("missing", Missing(), "no such program"),
        ("strange", Slow(answer=strange), "schema 99"),
    ):
        run = Running(tmp_path / name, tuner).rounds(MEASURING + 10)
        assert {wants(decision) for decision in run.of_second()} == {1}
        assert len(run.notes(why)) == 1
        assert replay(run.entries, build_controller).difference is None


def test_a_tuning_that_takes_too_long_is_given_up_and_noted(tmp_path: Path) -> None:
    tuner = Slow(after=None)
    run = Running(tmp_path, tuner, tuning_limit_s=20.0).rounds(MEASURING + 10)
    assert tuner.stopped == 1
    assert run.notes("took more than") == ["tuning took more than 20 s: bounds and weights stay"]
    assert {wants(decision) for decision in run.of_second()} == {1}


def test_after_a_restart_the_tuned_bounds_hold_and_nothing_is_tuned_before_a_period_is_over(
    tmp_path: Path,
) -> None:
    first = Running(tmp_path, Slow(), retune_s=60.0).rounds(MEASURING + 10)
    first.control.stop()
    tuner = Slow()
    again = Running(tmp_path, tuner, at_s=first.at_s, retune_s=60.0).rounds(12)
    assert [wants(decision) for decision in again.of_second()[10:]] == [2] * 12
    assert tuner.jobs == []
    headers = [entry for entry in again.entries if isinstance(entry, Header)]
    assert configuration_of(headers[-1].controller).bounds_s == TIGHT
    answer = replay(again.entries, build_controller)
    assert (answer.ticks, answer.difference) == (22, None)


def test_after_a_restart_a_load_that_moved_waits_for_the_end_of_a_period_too(tmp_path: Path) -> None:
    first = Running(tmp_path, Slow(), retune_s=100.0).rounds(MEASURING + 10)
    first.control.stop()
    tuner = Slow()
    again = Running(tmp_path, tuner, at_s=first.at_s, retune_s=100.0).rounds(20, rate=300.0)
    assert tuner.jobs == []
    again.rounds(2, rate=300.0)
    assert len(tuner.jobs) == 1


def test_a_run_interrupted_before_it_was_tuned_is_tuned_after_the_restart(tmp_path: Path) -> None:
    first = Running(tmp_path, Slow(after=None)).rounds(MEASURING + 2)
    tuner = Slow()
    Running(tmp_path, tuner, at_s=first.at_s).rounds(MEASURING + 1)
    assert len(tuner.jobs) == 1


def test_the_weights_of_the_objective_are_those_of_the_operators() -> None:
    weights = Weights(performance=0.1, resources=0.8, reconfiguration=0.1)
    objective = replace(OBJECTIVE, weights=weights)
    assert controller_for(paced(GRAPH, objective=objective), policy="ql").weights == weights


def test_after_a_restart_what_is_asked_now_holds(tmp_path: Path) -> None:
    first = Running(tmp_path, Slow(), application_policy="grant-all", policy="model-based").rounds(
        MEASURING + 2
    )
    again = Running(
        tmp_path,
        Slow(),
        at_s=first.at_s,
        application_policy="grant-all",
        policy="model-based",
        advise=True,
        max_nodes=3,
    ).rounds(2)
    latest = latest_header(again.entries)
    assert latest is not None
    assert latest.controller.safety is not None
    assert (latest.controller.advise, latest.controller.safety.max_nodes) == (True, 3)
    assert replay(again.entries, build_controller).difference is None


def test_what_was_learned_is_written_now_and_then_and_what_was_ordered_after_every_round(
    tmp_path: Path,
) -> None:
    running = Running(tmp_path, Slow(), application_policy="grant-all", policy="model-based")
    running.rounds(MEASURING + 1)
    learned, state = (tmp_path / "work" / name for name in ("learned.json", "controller.json"))
    written = {}
    for _ in range(8):
        before = learned.stat().st_mtime_ns, state.stat().st_mtime_ns
        running.rounds(1)
        after = learned.stat().st_mtime_ns, state.stat().st_mtime_ns
        assert after[1] != before[1]
        written[running.at_s] = after[0] != before[0]
    assert sum(written.values()) == 1  # in 40 s
    # Killed: the next one goes on with what is on disk, and its journal replays.
    again = Running(tmp_path, Slow(), application_policy="grant-all", policy="model-based").rounds(2)
    assert replay(again.entries, build_controller).difference is None
    before_the_end = learned.stat().st_mtime_ns
    again.control.stop()
    assert learned.stat().st_mtime_ns > before_the_end


def test_a_run_is_not_gone_on_with_by_another_policy_or_a_broken_memory(tmp_path: Path) -> None:
    Running(tmp_path, Slow(), application_policy="grant-all", policy="model-based").rounds(MEASURING + 2)
    with pytest.raises(InputError, match="the run there has policy model-based, not vi"):
        Running(tmp_path, Slow(), application_policy="grant-all", policy="vi")
    (tmp_path / "work" / "controller.json").write_text("")
    with pytest.raises(InputError, match=r"controller\.json: cannot resume from it"):
        Running(tmp_path, Slow(), application_policy="grant-all", policy="model-based")


@pytest.mark.parametrize(
    ("load", "why"),
    [
        ({}, None),
        ({"rate": 105.0}, None),
        ({"rate": 300.0}, "the load from 100 to"),
        ({"service_s": 0.020}, "service time of 'second' from 0.008 to"),
    ],
)
def test_it_is_tuned_again_after_a_period_only_if_something_moved(
    tmp_path: Path, load: dict[str, float], why: str | None
) -> None:
    tuner = Slow(after=1)
    run = Running(tmp_path, tuner, retune_s=100.0).rounds(MEASURING + 2).rounds(22, **load)
    assert len(tuner.jobs) == (1 if why is None else 2)
    if why is not None:
        assert configuration_of(tuner.jobs[1]).bounds_s == TIGHT, "it goes on from what holds"
        assert any(why in text for text in run.notes("tuning begins"))
        begun = [e.at_s for e in run.entries if isinstance(e, Noted) and "tuning begins" in e.text]
        assert begun[1] - begun[0] >= 100.0
    assert replay(run.entries, build_controller).difference is None


@pytest.mark.parametrize("manager", [name for name in entries(Level.APPLICATION) if name not in MODEL_FREE])
def test_a_manager_that_needs_a_model_measures_first_then_decides_and_replays(
    tmp_path: Path, manager: str
) -> None:
    run = Running(tmp_path, Slow(), application_policy=manager).rounds(MEASURING + 4, rate=200.0)
    ticks = [entry for entry in run.entries if isinstance(entry, Ticked)]
    assert len(ticks) == 4
    assert len(run.notes("measuring, before the first decision")) == MEASURING
    latest = latest_header(run.entries)
    assert latest is not None
    measured = [operator.service_time_s for operator in latest.controller.application.operators]
    assert measured == pytest.approx([0.001, 0.008])
    # 1.6 replicas' worth of work: who knows that wants more than one.
    assert wants(ticks[-1].plan.decisions["second"]) >= 2
    assert replay(run.entries, build_controller).difference is None


@pytest.mark.parametrize("manager", MODEL_FREE)
def test_one_that_needs_none_decides_at_once(tmp_path: Path, manager: str) -> None:
    run = Running(tmp_path, Slow(), application_policy=manager, policy="threshold-c").rounds(3)
    assert len(run.of_second()) == 3
    assert replay(run.entries, build_controller).difference is None


def test_an_objective_that_service_alone_breaks_is_said_while_measuring_goes_on(tmp_path: Path) -> None:
    run = Running(tmp_path, Slow(), application_policy="lohrmann-c").rounds(MEASURING + 2, service_s=0.2)
    assert run.of_second() == []
    assert run.notes("takes 201 ms of service alone")
    assert len(run.rounds(400, service_s=0.008).of_second()) > 0, "until it is measured otherwise"


def spec(objective: Objective = OBJECTIVE, **tuning: int) -> ControllerSpec:
    return ControllerSpec(
        application=GRAPH,
        objective=objective,
        node_types=ONE,
        operators=operator_specs(GRAPH, objective),
        operator_policy=Manager(name="drs-c"),
        application_policy=Manager(name="tuned", parameters=tuning),
        weights=naive(GRAPH, objective).weights,
        interval_s=5.0,
        safety=replace(UNGUARDED, interval_s=5.0),
    )


def test_the_analyser_takes_rates_and_moments_from_what_was_monitored() -> None:
    """Half of the tuples take 6 ms, half 10 ms, exponential: a second moment of (72 + 200) / 2 = 136 ms2."""
    monitored = [seen(5.0 * i, rate=100.0, service_s=0.006 if i % 2 else 0.010) for i in range(6)]
    job = job_of(spec(), monitored)
    second = job.application.operator("second")
    assert second.service_time_s == pytest.approx(0.008)
    assert second.service_scv == pytest.approx(136 / 64 - 1)
    assert job.source_rates == (100.0,) * 6
    assert configuration_of(job) == configuration_of(spec())
    assert moved(job, job) == ""
    assert not is_tuned(job)
    blind = [one._replace(operators=()) for one in monitored]
    with pytest.raises(InputError, match="no service time was measured"):
        job_of(spec(), blind)


def test_the_analyser_takes_micro_batches_from_what_was_monitored() -> None:
    monitored = [seen(5.0 * i, fixed_s=0.2) for i in range(6)]
    job = job_of(spec(), monitored, trigger_s=0.5)
    managed = [one.batching for one in job.operators]
    assert managed == [one.batching for one in job.application.operators]
    for batching in managed:
        assert batching is not None
        assert batching.fixed_s == pytest.approx(0.2)
        assert batching.trigger_s == 0.5
    twice = job_of(spec(), [seen(5.0 * i, fixed_s=0.4) for i in range(6)])
    assert moved(job, twice) == "fixed part of micro-batches of 'first' from 0.2 to 0.4"
    assert moved(job_of(spec(), [seen(5.0 * i) for i in range(6)]), job) == "", "nothing to compare with"


def test_tuning_is_judged_on_micro_batches_where_there_are_any() -> None:
    """90 tuples/s on one replica each: batches of .2 / .91 and .2 / .28 s, and half of that to wait."""
    monitored = [seen(5.0 * i, rate=90.0, fixed_s=0.2) for i in range(4)]
    job = replace(
        job_of(spec(Objective(response_time_s=5.0)), monitored),
        operator_policy=Manager(name="fixed", parameters={"replicas": 1}),
    )
    rates = read_only(np.full(10, 90.0))
    rngs = dict.fromkeys(("first", "second"), np.random.default_rng(1))
    one_each = managed_operators(job, _Monitored(job, rates), rngs)
    ran = run_application(job.application, job.objective, one_each, rates)
    assert ran.response_time_s == pytest.approx(np.full(10, 0.3 / 0.91 + 0.3 / 0.28))


def test_a_live_run_tells_its_tuner_of_micro_batches_and_of_the_trigger(tmp_path: Path) -> None:
    tuner = Slow(after=1)
    run = Running(tmp_path, tuner, trigger_s=0.7).rounds(MEASURING + 3, fixed_s=0.02)
    begun = next(entry for entry in run.entries if isinstance(entry, Header))
    for one in (*tuner.jobs[0].operators, *begun.controller.operators):
        assert one.batching is not None
        assert one.batching.fixed_s == pytest.approx(0.02)
        assert one.batching.trigger_s == 0.7
    assert replay(run.entries, build_controller).difference is None


def test_tuning_keeps_every_path_within_its_limit_saves_resources_and_repeats_exactly() -> None:
    """One replica of each would do: 1.1 + 28.6 ms at 90 tuples/s, M/M/1.

    The naive 20 ms for `second` want a second one from 80 tuples/s on, and let it go at 60: dearer,
    and half of all intervals change something.
    """
    job = easy_job(budget=8)
    first, again = (tuned(job) for _ in range(2))
    assert first == again
    assert isinstance(first, Retuned)
    chosen = configuration_of(retuned_spec(job, first))
    assert sum(chosen.bounds_s.values()) <= 1.05 * 0.040 + 1e-12
    assert chosen.bounds_s["second"] > 0.0286
    assert "to 2 in simulation, requirements kept" in first.reason
    assert is_tuned(retuned_spec(job, first))


def easy_job(**tuning: int) -> ControllerSpec:
    rates = (60.0, 70.0, 80.0, 90.0)
    monitored = [seen(5.0 * i, rate=rate) for i, rate in enumerate(rates)]
    return job_of(spec(Objective(response_time_s=0.040), **tuning), monitored)


def test_the_process_says_why_it_failed_and_can_be_stopped(tmp_path: Path) -> None:
    job = job_of(spec(), [seen(5.0 * i) for i in range(3)])
    process = TunerProcess(tmp_path / "tuning")
    process.begin(replace(job, objective=Objective(response_time_s=0.005)))
    answer = waited(process)
    assert isinstance(answer, Noted)
    assert "takes 9 ms of service alone" in answer.text
    assert answer.text.endswith("bounds and weights stay")
    process.begin(job)
    assert process.answer() is None
    process.stop()
    assert isinstance(process.answer(), Noted)


def test_the_process_works_a_job_out(tmp_path: Path) -> None:
    process = TunerProcess(tmp_path / "tuning")
    process.begin(easy_job())
    assert waited(process) == tuned(easy_job())


def waited(process: TunerProcess) -> Retuned | Noted:
    for _ in range(2400):
        answer = process.answer()
        if answer is not None:
            return answer
        time.sleep(0.1)
    pytest.fail("no answer in four minutes")


def test_the_process_ends_when_the_run_is_gone(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(encoded(Header(controller=spec())))
    command = [sys.executable, "-m", "penstock.live.tuner", str(tmp_path)]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=120, check=False)
    assert ended.returncode == 1
    assert not (tmp_path / "answer.json").exists()
