"""What is drawn for a trial, and that whoever judges it sees what went wrong."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.apps.ledger.books import ACCOUNTS, BRANCHES, Posted, branch_of, entry, posted
from penstock.chaos.books import left_over, read_back, wrong_replay, wrong_results
from penstock.chaos.scenario import Kind, jump_s, scenario
from penstock.runtimes.spark.processes import Cast, Process
from penstock.runtimes.spark.stream_log import LogFile, StreamLog

TOTAL = 300


def test_a_trial_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    assert scenario(7) == scenario(7)
    assert len({scenario(seed).faults for seed in range(100)}) == 100


def test_a_hundred_trials_have_every_kind_of_fault_under_both_protocols() -> None:
    trials = [scenario(seed) for seed in range(1, 101)]
    kinds = {(trial.protocol, fault.kind) for trial in trials for fault in trial.faults}
    assert len(kinds) == 2 * len(Kind)
    assert {(trial.joined, trial.max_replicas) for trial in trials} == {
        (joined, replicas) for joined in (True, False) for replicas in (2, 3)
    }


def test_faults_come_in_the_order_in_which_they_are_due() -> None:
    for seed in range(100):
        shares = [fault.share for fault in scenario(seed).faults]
        assert shares == sorted(shares)


def test_only_what_was_asked_for_happens() -> None:
    only = (Kind.CLOCK, Kind.KILL_MASTER)
    assert {fault.kind for seed in range(50) for fault in scenario(seed, only).faults} == set(only)


def test_clocks_jump_by_a_second_up_to_an_hour_either_way() -> None:
    jumps = [jump_s(fault) for seed in range(300) for fault in scenario(seed, (Kind.CLOCK,)).faults]
    assert all(1 <= abs(jump) <= 3600 for jump in jumps)
    assert {jump > 0 for jump in jumps} == {True, False}


def test_books_add_up() -> None:
    """Beside sums over all entries, made another way."""
    rows, entries = list(posted(TOTAL)), [entry(number) for number in range(TOTAL)]
    for account in range(ACCOUNTS):
        mine = [one for one in rows if one.account == account]
        assert [one.number for one in mine] == list(range(1, len(mine) + 1))
        if mine:
            assert mine[-1].balance == sum(one.amount for one in entries if one.account == account)
    for branch in range(BRANCHES):
        mine = [one for one in rows if one.branch == branch]
        assert mine[-1].branch_number == len(mine)
        assert mine[-1].branch_total == sum(one.amount for one in entries if branch_of(one.account) == branch)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda rows: rows[:-2], "2 tuples lost: 298, 299"),
        (lambda rows: [*rows, rows[4]], "1 tuples come more than once: 4"),
        (lambda rows: [*rows, rows[4]._replace(id=TOTAL)], "1 tuples of nobody: 300"),
        (lambda rows: [rows[0]._replace(balance=1), *rows[1:]], "1 tuples not as they should be: "),
        (lambda rows: [], "300 tuples lost: 0, 1, 2 and 297 more"),
    ],
)
def test_wrong_results_are_named(spoil: Callable[[list[Posted]], list[Posted]], said: str) -> None:
    rows = list(posted(TOTAL))
    assert wrong_results(rows, TOTAL) == []
    assert wrong_results(rows[::-1], TOTAL) == []  # several files, in no order
    (problem,) = wrong_results(spoil(rows), TOTAL)
    assert problem.startswith(said)


def test_results_are_read_as_a_user_finds_them(tmp_path: Path) -> None:
    rows = list(posted(3))
    lines = [",".join(Posted._fields), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "books.csv").write_text("\n".join(lines))
    assert read_back(tmp_path / "books.csv") == rows


@pytest.fixture
def run(tmp_path: Path) -> tuple[Path, Path]:
    """What a run leaves, and its folder for temporary files."""
    out, temporary = tmp_path / "run", tmp_path / "temporary"
    temporary.mkdir()
    log = StreamLog(out / "work" / "streams" / "read").create()
    log.data_file("a.parquet").write_text("rows")
    log.publish(epoch=0, files=[LogFile(name="a.parquet", tuples=1)], published_at_s=0.0, origins=())
    return out, temporary


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ("run/work/streams/read/data/b.parquet", "that no batch names"),
        ("run/.summary.json.0123456789abcdef", "half written"),
        ("run/work/trial-read/f", "of trials"),
        ("temporary/penstock-x", "temporary"),
    ],
)
def test_what_is_left_over_is_named(run: tuple[Path, Path], left: str, said: str, tmp_path: Path) -> None:
    assert left_over(*run) == []
    place = tmp_path / left
    place.parent.mkdir(exist_ok=True)
    place.write_text("left")
    (problem,) = left_over(*run)
    assert problem.startswith(f"1 files left, {said}: ")


def test_a_journal_that_cannot_be_replayed_is_wrong(tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_text(json.dumps({"kind": "nonsense"}) + "\n")
    (problem,) = wrong_replay(journal)
    assert problem.startswith("the journal cannot be replayed: ")


def test_who_is_who_is_told_by_command_lines_and_parents() -> None:
    def java(pid: int, parent: int, program: str) -> Process:
        return Process(pid, parent, ("/usr/bin/java", "-cp", "x", program, ""))

    driver = Process(1, 0, ("python", "-m", "penstock", "run", "ledger"))
    master = java(2, 1, "org.apache.spark.deploy.master.Master")
    worker = java(3, 1, "org.apache.spark.deploy.worker.Worker")
    executor = java(4, 3, "org.apache.spark.executor.CoarseGrainedExecutorBackend")
    gateway = java(5, 1, "org.apache.spark.deploy.SparkSubmit")
    daemon = Process(6, 4, ("python", "-m", "penstock.runtimes.spark.daemon"))
    python = Process(7, 6, ("python", "-m", "penstock.runtimes.spark.daemon"))
    cast = Cast(1, (driver, master, worker, executor, gateway, daemon, python))
    assert cast.drivers == [driver]
    assert (cast.masters, cast.workers, cast.executors) == ([master], [worker], [executor])
    assert (cast.drivers_java, cast.pythons) == ([gateway], [python])
