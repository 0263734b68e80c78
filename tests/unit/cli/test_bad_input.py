"""What `make rubbish` found, one of each kind: bad input is one line and leaves everything as it was."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_sysfs import CPUFREQ, acpi_cpufreq
from penstock.journal_file import JournalFile
from rubbish.material import material

Run = Callable[..., tuple[int, str, str]]
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "plan"
DEEP = 5000


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "taxi-small.txt"
    path.write_text("".join(f"{rate}\n" for rate in range(10, 600, 20)))
    return path


@pytest.fixture
def going(tmp_path: Path) -> Path:
    """A run that was interrupted, under a manager that needs a model."""
    for path, content in material().runs[1][1].items():
        place = tmp_path / "going" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return tmp_path / "going"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def only_line(answer: tuple[int, str, str]) -> str:
    status, out, err = answer
    assert (status, out) == (2, "")
    assert err.startswith("penstock: ")
    assert err.count("\n") == 1
    assert err.removesuffix("\n").isprintable()
    return err


def test_what_a_message_quotes_cannot_command_the_terminal(run: Run, tmp_path: Path) -> None:
    (tmp_path / "taxi.txt").write_text("10\n\x1b[2J5\n")
    assert r"line 2: '\x1b[2J5' is not a number" in only_line(run("simulate", "--trace", "taxi.txt"))
    assert r"policy 'a\x07b': unknown" in only_line(run("simulate", "--policy", "a\x07b"))


def test_a_name_of_a_file_that_is_no_text_is_shown_all_the_same(
    run: Run, trace: Path, tmp_path: Path
) -> None:
    odd = "taxi-\udcff.txt"  # as Python has the byte ff
    status, out, err = run("trace", "synth", "--out", odd, "--slots", "9")
    assert (status, err) == (0, "")
    assert r"taxi-\udcff.txt: 9 slots" in out
    status, out, err = run("trace", "describe", odd, "--against", trace, "--page", "page.html")
    assert (status, err) == (0, "")
    assert r"taxi-\udcff" in (tmp_path / "page.html").read_text()


def test_a_message_is_short_however_long_what_it_quotes(run: Run) -> None:
    err = only_line(run("simulate", "--policy", 5000 * "x"))
    assert len(err) < 1100
    assert "characters) ..." in err


@pytest.mark.parametrize("brackets", [DEEP * "[", DEEP * '{"a":'])
def test_brackets_without_end_are_no_journal(run: Run, tmp_path: Path, brackets: str) -> None:
    (tmp_path / "journal.jsonl").write_text(f"{brackets}\n{{}}\n")
    assert "line 1: not JSON" in only_line(run("replay", "journal.jsonl"))


def test_brackets_without_end_are_no_toml(run: Run, tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text(f"x = {DEEP * '['}{DEEP * ']'}")
    words = ("plan", "--app", "app.toml", "--network", EXAMPLES / "backbone.toml")
    assert "app.toml: no TOML: brackets" in only_line(run(*words))
    (tmp_path / "app.toml").write_text(f"x = {DEEP * '9'}")
    assert "app.toml: no TOML: Exceeds the limit" in only_line(run(*words))


def test_a_number_too_large_for_any_machine_is_named(run: Run, tmp_path: Path) -> None:
    header, *others = material().journals[-1].decode().splitlines()
    said = json.loads(header)
    said["controller"]["interval_s"] = 10**400
    (tmp_path / "journal.jsonl").write_text("\n".join([json.dumps(said), *others]))
    assert "interval_s: 1000" in only_line(run("replay", "journal.jsonl"))


def test_a_round_at_no_time_is_an_error_and_no_answer(run: Run, tmp_path: Path) -> None:
    lines = material().journals[0].decode().splitlines()
    at = next(number for number, line in enumerate(lines) if '"kind":"Ticked"' in line)
    ticked = json.loads(lines[at])
    ticked["seen"]["at_s"] = float("nan")
    lines[at] = json.dumps(ticked)
    (tmp_path / "journal.jsonl").write_text("\n".join(lines))
    assert f"line {at + 1}: Ticked: the application seen at nan s" in only_line(
        run("replay", "journal.jsonl", "--json")
    )


def test_a_controller_without_node_types_is_refused(run: Run, tmp_path: Path) -> None:
    header, *others = material().journals[-1].decode().splitlines()
    said = json.loads(header)
    said["controller"]["node_types"] = []
    (tmp_path / "journal.jsonl").write_text("\n".join([json.dumps(said), *others]))
    assert "controller: no node types; at least one is needed" in only_line(run("replay", "journal.jsonl"))


@pytest.mark.parametrize("words", [("run", "paced"), ("compare", "--runtime", "spark")])
def test_a_load_that_nobody_could_hold_is_refused(run: Run, words: tuple[str, ...]) -> None:
    answer = run(*words, "--policy", "fixed", "--minutes", "1e18")
    assert "load: made up for 6e+19 s; give at most 100 days" in only_line(answer)


@pytest.mark.parametrize(
    "words",
    [
        ("run", "paced", "--policy", "ds2"),
        ("run", "top-routes", "--policy", "fixed"),
        ("compare", "--runtime", "spark", "--policies", "static-peak"),
        ("simulate", "--policy", "heinze-c"),
        ("simulate", "--policy", "fixed", "--application", "pipeline"),
    ],
)
@pytest.mark.parametrize("many", [10**9, 10**399], ids=["a billion", "400 digits"])
def test_more_replicas_than_any_engine_runs_are_refused(run: Run, words: tuple[str, ...], many: int) -> None:
    assert "at most 100,000 can run" in only_line(run(*words, "--max-replicas", many))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (7, "'state' is no JSON object"),
        ({"schema": 1}, "field 'policies' is missing"),
        ({"schema": 2}, "schema 2; this version reads schema 1"),
    ],
)
def test_a_memory_of_another_kind_is_refused(run: Run, tmp_path: Path, state: object, message: str) -> None:
    lines = material().journals[-1].decode().splitlines()
    remembered = json.loads(lines[1])
    remembered["memory"]["state"] = state
    lines[1] = json.dumps(remembered)
    (tmp_path / "journal.jsonl").write_text("\n".join(lines))
    assert message in only_line(run("replay", "journal.jsonl"))


def test_what_was_learned_by_nobody_known_is_refused(
    run: Run, going: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.live.run.compile_policy", lambda spec: None)
    place = going / "work" / "controller.json"
    kept = json.loads(place.read_text())
    kept["state"]["policies"]["applicationx"] = None
    place.write_text(json.dumps(kept))
    status, _, err = run("run", "paced", "--application-policy", "drs-c", "--out", going)
    assert status == 2
    assert "cannot resume from it: saved memory: operator 'applicationx' is not managed" in err


def test_a_run_that_is_refused_is_left_as_it_was(
    run: Run, going: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.live.run.compile_policy", lambda spec: None)
    (going / "work" / "controller.json").write_text('{"state": 7}')
    (going / "summary.json").write_text('{"finished": false}')
    journal = going / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() + b'{"kind": "Ti')  # cut off by a crash
    before = contents(going)
    status, _, err = run("run", "paced", "--application-policy", "drs-c", "--out", going)
    assert (status, err.splitlines()[-1].partition(": cannot resume from it: ")[1]) == (
        2,
        ": cannot resume from it: ",
    )
    assert contents(going) == before


def test_a_journal_opened_in_vain_leaves_no_file(tmp_path: Path) -> None:
    with JournalFile(tmp_path / "journal.jsonl"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_note_is_told_once_there_is_nothing_to_refuse(run: Run, tmp_path: Path) -> None:
    (tmp_path / "rates.txt").write_text("many\n")
    words = ("run", "paced", "--policy", "fixed", "--rates", "rates.txt", "--out", "ran")
    assert "rates.txt: line 1" in only_line(run(*words))


def test_what_has_no_end_is_not_read(run: Run, tmp_path: Path) -> None:
    assert "/dev/zero: cannot read: a device" in only_line(run("simulate", "--trace", "/dev/zero"))
    assert "a device" in only_line(run("replay", "/dev/zero"))
    files = ("--app", "/dev/zero", "--network", EXAMPLES / "backbone.toml")
    assert "/dev/zero: cannot read: a device" in only_line(run("plan", *files))


def test_a_link_to_itself_is_no_output(run: Run, trace: Path, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    words = ("trace", "describe", trace, "--page")
    assert "loop: cannot write: Too many levels" in only_line(run(*words, "loop"))
    assert (tmp_path / "loop").is_symlink()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("simulate", "--policy", "fixed", "--set", f"replicas={400 * '9'}"), "a whole number of at most"),
        (("trace", "synth", "--out", "x.txt", "--like", "taxi", "--slots", 30 * "9"), "slots=999"),
        (("compare", "--seeds", "1000000000"), "1000000000"),
        (("sweep", "--trace", "t", "--policies", "ql", "--out", "o", "--seeds", "1000000000"), "1000000000"),
        (("simulate", "--policy", "ql-pds", "--max-rate", "5e-324"), "1e-09 tuples/s or more"),
        (("run", "paced", "--slo", "5e-324"), "response time 5e-324 s; give 1e-09 s or more"),
    ],
)
def test_what_would_take_for_ever_or_cannot_be_counted_is_refused(
    run: Run, words: tuple[str, ...], message: str
) -> None:
    assert message in only_line(run(*words))


def test_levels_without_end_are_refused(run: Run, trace: Path) -> None:
    words = ("trace", "describe", trace, "--levels", 400 * "9")
    assert "give 1 to 1,000,000" in only_line(run(*words))


def test_a_page_that_cannot_be_written_is_told_before_the_plan_is(run: Run, tmp_path: Path) -> None:
    files = ("--app", EXAMPLES / "top-routes.toml", "--network", EXAMPLES / "backbone.toml")
    assert "/dev/full: cannot write" in only_line(run("plan", *files, "--out", "/dev/full"))


def test_prices_that_overflow_are_refused_before_they_are_multiplied(run: Run, tmp_path: Path) -> None:
    prices = (EXAMPLES / "backbone.toml").read_text().replace("link_price = ", "link_price = 1e300 # ")
    assert "1e300" in prices
    (tmp_path / "network.toml").write_text(prices)
    words = ("--app", EXAMPLES / "top-routes.toml", "--network", "network.toml", "--write-lp", "p.lp")
    assert "network: price has values that are negative, not finite or above 1e+50" in only_line(
        run("plan", *words)
    )


def test_an_integer_programme_that_nobody_could_solve_is_not_written(run: Run, tmp_path: Path) -> None:
    text = (EXAMPLES / "top-routes.toml").read_text().replace("max_replicas = 2", "max_replicas = 5")
    (tmp_path / "app.toml").write_text(text)
    words = ("--app", "app.toml", "--network", EXAMPLES / "backbone.toml", "--write-lp", "p.lp")
    assert "the integer programme has" in only_line(run("plan", *words))
    assert not (tmp_path / "p.lp").exists()


def test_a_frequency_that_no_kernel_shows_is_a_policy_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    root = acpi_cpufreq(tmp_path / "sys", 1)
    (root / CPUFREQ / "policy0" / "scaling_cur_freq").write_text(400 * "9")
    status, out, err = run("power", "--sys", root, "--state", "state", "--seconds", "0.1")
    assert (status, err) == (0, "")
    assert "is not a frequency in kHz" in out
