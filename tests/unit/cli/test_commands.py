"""The command line as a user or a script meets it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.bench.figure import Figure
from penstock.control.build import build_controller
from penstock.control.journal import Header, Ticked
from penstock.control.loop import plan
from penstock.control.safety_settings import UNGUARDED
from penstock.control.spec import ControllerSpec, Manager, operator_specs
from penstock.domain.application import Operator, pipeline
from penstock.domain.deployment import Replicas
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.journal_file import JournalFile
from penstock.papers.claims import Claim, Findings, less_than
from penstock.papers.reproductions import Reproduction

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "taxi-small.txt"
    path.write_text("".join(f"{rate}\n" for rate in range(10, 600, 2)))
    return path


def test_simulate_prints_one_json_object_and_nothing_else(run: Run, trace: Path) -> None:
    status, out, err = run("simulate", "--policy", "ql-pds", "--trace", trace, "--json")
    assert status == 0
    assert err == ""
    answer = json.loads(out)
    assert answer["slots"] == 295
    assert {
        "avg_cost",
        "violations_pct",
        "reconfigurations_pct",
        "resource_cost",
        "slots_per_s",
    } <= answer.keys()


def test_the_example_of_the_documentation_gives_the_printed_row(run: Run, rates_directory: Path) -> None:
    setting = ("--infrastructure", "A:3", "--max-replicas", 10, "--slo-ms", 50, "--slots", 400001)
    words = (*setting, "--as-published", "--json")
    _, out, _ = run("simulate", "--policy", "ql-pds", "--trace", rates_directory / "taxi.txt", *words)
    answer = json.loads(out)
    shown = [f"{answer['avg_cost']:.4f}", f"{answer['violations_pct']:.1f}"]
    shown += [f"{answer['reconfigurations_pct']:.1f}", f"{answer['resource_cost']:.2f}"]
    assert shown == ["0.0836", "0.6", "4.6", "7.07"]  # Russo 2023, Table 2


def test_the_same_seed_prints_the_same_answer(run: Run, trace: Path) -> None:
    def answer(seed: int) -> dict[str, object]:
        _, out, _ = run("simulate", "--policy", "ql", "--trace", trace, "--seed", seed, "--json")
        return {key: value for key, value in json.loads(out).items() if key not in ("slots_per_s", "seed")}

    assert answer(3) == answer(3) != answer(4)


def test_compare_orders_by_cost_and_writes_a_self_contained_page(
    run: Run, trace: Path, tmp_path: Path
) -> None:
    page = tmp_path / "deep" / "page.html"
    words = ("--policies", "fixed,ql,threshold-c", "--seeds", 3, "--out", page, "--json")
    status, out, _ = run("compare", "--trace", trace, *words)
    assert status == 0
    policies = json.loads(out)["policies"]
    means = [policy["avg_cost"]["mean"] for policy in policies]
    assert means == sorted(means)
    by_name = {policy["policy"]: policy for policy in policies}
    assert by_name["ql"]["seeds"] == 3
    assert by_name["ql"]["avg_cost"]["half_width_95"] > 0
    assert by_name["fixed"]["avg_cost"]["half_width_95"] is None
    text = page.read_text()
    assert "Plotly.newPlot" in text
    assert "<script src" not in text


def test_compare_says_the_same_whatever_the_number_of_threads(run: Run, trace: Path) -> None:
    def answer(threads: int) -> str:
        words = ("--policies", "ql,ql-pds-plus", "--seeds", 4, "--threads", threads, "--json")
        return run("compare", "--trace", trace, *words)[1]

    assert answer(1) == answer(3)


def test_a_history_has_a_line_per_slot(run: Run, trace: Path, tmp_path: Path) -> None:
    history = tmp_path / "history.csv"
    assert run("simulate", "--policy", "ds2", "--trace", trace, "--history", history)[0] == 0
    lines = history.read_text().splitlines()
    assert lines[0] == "slot,rate,replicas,resources,response_time_s,cost"
    assert len(lines) == 1 + 295


def test_an_application_can_be_simulated(run: Run, trace: Path) -> None:
    _, out, _ = run(
        "simulate", "--application", "diamond", "--trace", trace, "--policy", "threshold-0", "--json"
    )
    assert json.loads(out)["mean_replicas"] >= 5  # five operators, one replica each at least


def test_a_made_up_trace_can_be_described_and_is_the_same_for_the_same_seed(run: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    for path in (first, second):
        assert run("trace", "synth", "--out", path, "--slots", 3000, "--seed", 5)[0] == 0
    assert first.read_text() == second.read_text()
    _, out, _ = run("trace", "describe", first, "--json")
    assert json.loads(out)["slots"] == 3000


def test_a_trace_without_a_preset_needs_a_service_rate(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("10\n20\n30\n")
    status, _, err = run("simulate", "--trace", path)
    assert (status, "--service-rate" in err) == (2, True)
    assert run("simulate", "--trace", path, "--service-rate", 20)[0] == 0


BAD_TRACES = {
    "text": ("10\nmany\n", "line 2: 'many' is not a number"),
    "nan": ("10\n20\nnan\n", "line 3: 'nan' is not a finite rate"),
    "infinite": ("inf\n", "line 1: 'inf' is not a finite rate"),
    "absurd": ("10\n1e300\n", "line 2: 1e300 is above 1e+15 tuples per second"),
    "negative": ("10\n-3\n", "line 2: -3 is negative"),
    "empty": ("", "empty"),
    "blank line": ("10\n\n20\n", "line 2: '' is not a number"),
    "underscore": ("10\n1_000\n", "line 2: '1_000' is not a number"),
    "binary": ("\x00\x01\n", "line 1"),
}


@pytest.mark.parametrize("kind", BAD_TRACES)
def test_a_bad_trace_is_named_by_file_line_and_value(run: Run, tmp_path: Path, kind: str) -> None:
    text, expected = BAD_TRACES[kind]
    path, history = tmp_path / "taxi-bad.txt", tmp_path / "history.csv"
    path.write_text(text)
    status, out, err = run("simulate", "--trace", path, "--history", history)
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert str(path) in err
    assert expected in err
    assert not history.exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["simulate", "--policy", "ql-psd"], "policy 'ql-psd': unknown; did you mean 'ql-pds'?"),
        (["simulate", "--policy", "zzz"], "policy 'zzz': unknown; choose one of adaptive, dql, "),
        (["simulate", "--infrastructure", "Z:3"], "infrastructure 'Z:3': unknown"),
        (
            ["simulate", "--infrastructure", "A:0"],
            "infrastructure 'A:0': give the number of node types, 1 to 10",
        ),
        (["simulate", "--infrastructure", "A"], "infrastructure 'A': give the number"),
        (["simulate", "--max-replicas", "0"], "max_replicas=0; at least one replica must run"),
        (["simulate", "--max-replicas", "many"], "many"),
        (["simulate", "--weights", "0.6,0.2,0.3"], "they sum to 1.1; they must sum to 1"),
        (["simulate", "--weights", "0.6,0.4"], "--weights '0.6,0.4': give three numbers"),
        (["simulate", "--weights", "1.2,-0.1,-0.1"], "not negative"),
        (["simulate", "--slo-ms", "0"], "response-time objective 0 ms"),
        (["simulate", "--slots", "0"], "--slots 0"),
        (["simulate", "--slots", "-5"], "--slots -5"),
        (["simulate", "--trace", "nowhere.txt"], "nowhere.txt: cannot read"),
        (["simulate", "--trace", "."], "cannot read"),
        (["simulate", "--preset", "trains"], "preset 'trains': unknown; choose one of taxi, tweets"),
        (["simulate", "--rate-change", "2@later"], "--rate-change '2@later'"),
        (["simulate", "--price-change", "100@99999999"], "--price-change '100@99999999'"),
        (["simulate", "--update", "magic"], "--update 'magic'"),
        (["simulate", "--levels", "0"], "levels=0"),
        (["simulate", "--max-rate", "0"], "max_rate=0"),
        (["simulate", "--service-rate", "-1"], "service rate -1"),
        (["simulate", "--seed", "-1"], "seed -1"),
        (
            ["simulate", "--set", "replicas=11", "--policy", "fixed"],
            "policy 'fixed': replicas=11; 1 to 10 may run",
        ),
        (
            ["simulate", "--set", "replicas=0", "--policy", "fixed"],
            "policy 'fixed': replicas=0: it must be at least 1",
        ),
        (
            ["simulate", "--set", "threshold=1.5", "--policy", "threshold-c"],
            "threshold=1.5: it must be above 0 and below 1",
        ),
        (["simulate", "--application", "star"], "application 'star': unknown"),
        (
            ["simulate", "--policy", "vi", "--infrastructure", "A:10", "--max-replicas", "20"],
            "too many states",
        ),
        (["simulate", "--policy", "vi", "--levels", "5000"], "5000 levels have too many states"),
        (["simulate", "--infrastructure", "A:\N{SUPERSCRIPT TWO}"], "give the number of node types"),
        (
            ["simulate", "--infrastructure", "A:" + 5000 * "9", "--as-published"],
            "give the number of node types",
        ),
        (["simulate", "--rate-change", "2@inf"], "--rate-change '2@inf'"),
        (["simulate", "--price-change", "inf@0.5"], "--price-change 'inf@0.5': factor inf"),
        (["simulate", "--speed-change", "nan@0.5"], "--speed-change 'nan@0.5': factor nan"),
        (["simulate", "--slo-ms", "inf", "--json", "--history", "h.csv"], "response-time objective inf ms"),
        (["simulate", "--service-rate", "inf"], "service rate inf"),
        (["simulate", "--service-rate", "1e-320"], "service rate 9.99989e-321"),
        (["simulate", "--service-scv", "inf"], "SCV inf"),
        (["simulate", "--max-rate", "inf"], "max_rate=inf"),
        (["simulate", "--weights", "0.20000001,0.4,0.4"], "they sum to 1.00000001"),
        (["simulate", "--history", "."], "cannot write: Is a directory"),
        (["simulate", "--history", 300 * "a"], "File name too long"),
        (["compare", "--out", 300 * "a"], "File name too long"),
        (["reproduce", "--data", 300 * "a"], "no taxi.txt in"),
        (["simulate", "--policy", "threshold-c", "--max-rate", "nan"], "max_rate=nan"),
        (["simulate", "--policy", "threshold-c", "--levels", 24 * "9"], "levels=999"),
        (["simulate", "--policy", "threshold-c", "--set", "threshold=nan"], "threshold=nan"),
        (["simulate", "--policy", "threshold-c", "--set", "beta"], "--set 'beta': give NAME=VALUE"),
        (["simulate", "--policy", "ql", "--set", "beta=2"], "policy 'ql': no parameter 'beta'"),
        (["simulate", "--policy", "ql", "--set", "vi.gamma=.9"], "'vi' is not one of ql"),
        (["simulate", "--policy", "nowhere:Policy"], "policy 'nowhere:Policy': no module 'nowhere'"),
        (["simulate", "--pause-s", "5"], "--pause-s: there is no application; give --application"),
        (
            ["simulate", "--application", "diamond", "--pause-s", "5"],
            "--pause-s: nobody manages the application; give --application-policy",
        ),
        (["simulate", "--application", "diamond", "--speed-change", "2@0.5"], "to single operators only"),
        (
            [
                "simulate",
                "--application",
                "pipeline",
                "--application-policy",
                "centralised-rl",
                "--infrastructure",
                "A:1",
                "--max-replicas",
                "3",
                "--policy",
                "ql",
                "--set",
                "gamma=.9",
            ],
            "policy 'ql' and application policy 'centralised-rl' both have it; say which, as in ql.gamma=...",
        ),
        (["simulate", "--policy", "QL-PDS+"], "did you mean 'ql-pds-plus'?"),
        (["simulate", "--rate-change", "2@-0.1"], "slots count from 0"),
        (["simulate", "--slots", "99999999999"], "slots=99999999999"),
        (["trace", "synth", "--out", "x.txt", "--mean-rate", "inf"], "mean rate inf"),
        (
            ["run", "nothing"],
            "application 'nothing': unknown; choose one of algo-trader, diamond, ledger, lookups",
        ),
        (["run", "paced", "--minutes", "0"], "minutes 0"),
        (["run", "paced", "--policy", "nope"], "policy 'nope': unknown"),
        (["run", "paced", "--load", "storm"], "load 'storm': unknown"),
        (
            ["run", "paced", "--application-policy", "chaos"],
            "application policy 'chaos': unknown; choose one of centralised",
        ),
        (["run", "paced", "--application-policy", "drs-cc"], "did you mean 'drs-c'"),
        (
            ["run", "paced-diamond", "--application-policy", "centralised", "--max-replicas", "10"],
            "centralised: 5 operators with 10, 10, 10, 10, 10 replicas: 100,000 joint deployments",
        ),
        (
            ["run", "paced", "--application-policy", "tuned", "--policy", "threshold-c"],
            "policy 'threshold-c': it has no bounds or weights",
        ),
        (
            ["run", "paced", "--application-policy", "tuned", "--policy", "fixed"],
            "policy 'fixed': it has no bounds or weights",
        ),
        *(
            (
                [
                    "simulate",
                    "--application",
                    "pipeline",
                    "--application-policy",
                    "tuned",
                    "--policy",
                    *words,
                ],
                f"policy '{words[0]}': it has no bounds or weights",
            )
            for words in (["threshold-c"], ["ds2"], ["heinze-s"], ["fixed", "--set", "replicas=3"])
        ),
        (
            ["compare", "--application", "pipeline", "--application-policies", "grant-all,tuned"],
            "policy 'threshold-c': it has no bounds or weights",
        ),
        (
            ["run", "paced", "--application-policy", "tuned", "--retune-every", "0"],
            "time between two tunings 0",
        ),
        (["run", "paced", "--replicas", "0"], "replicas=0"),
        (["run", "paced", "--low", "-1"], "low=-1"),
        (["run", "top-routes", "--input", "nowhere.csv"], "nowhere.csv: cannot read"),
        (["compare", "--runtime", "moon"], "--runtime 'moon': choose sim or spark"),
        (["compare", "--runtime", "spark", "--policies", "nope"], "policy 'nope': unknown"),
        (["simulate", "--no-such-option"], "--no-such-option"),
        (["compare", "--policies", ","], "--policies ',': give at least one name"),
        (["compare", "--policies", "ql,nope"], "policy 'nope': unknown"),
        (["trace", "describe", "nowhere.txt"], "nowhere.txt: cannot read"),
        (["trace", "synth", "--out", "x.txt", "--slots", "0"], "slots=0"),
        (["trace", "synth", "--out", "x.txt", "--like", "storm"], "--like 'storm': unknown"),
        (["reproduce", "nothing"], "reproduce 'nothing': unknown; choose one of taas-tables"),
        (["reproduce", "--data", "nowhere"], "no taxi.txt in nowhere/rates"),
        (["frobnicate"], "frobnicate"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_clear_line_and_exit_status_2(
    run: Run, words: list[str], expected: str, tmp_path: Path
) -> None:
    status, out, err = run(*words)
    assert status == 2
    assert out == ""
    assert err.startswith("penstock: ")
    assert err.count("\n") == 1
    assert expected in err
    assert list(tmp_path.iterdir()) == []


def test_output_that_cannot_be_written_leaves_nothing(run: Run, trace: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a directory")
    status, _, err = run(
        "compare", "--trace", trace, "--policies", "fixed", "--out", tmp_path / "taken" / "p.html"
    )
    assert status == 2
    assert "cannot write" in err
    assert (tmp_path / "taken").read_text() == "a file, not a directory"


def test_an_output_that_cannot_be_written_is_named_before_the_work(
    run: Run, trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worked(*_: object, **__: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr("penstock.simulation.play.run", worked)
    monkeypatch.setattr("penstock.simulation.play.run_all", worked)
    (tmp_path / "taken").write_text("a file")
    for words in (("simulate", "--history"), ("compare", "--out")):
        status, _, err = run(words[0], "--trace", trace, words[1], tmp_path / "taken" / "x")
        assert status == 2
        assert "not a directory" in err


def test_a_trace_is_described_with_a_finite_level_only(run: Run, trace: Path) -> None:
    status, out, err = run("trace", "describe", trace, "--max-rate", "inf", "--json")
    assert (status, out) == (2, "")
    assert "--max-rate inf" in err


def test_without_a_command_the_help_is_all_there_is(run: Run) -> None:
    status, out, err = run()
    assert status == 2
    assert "Usage" in out + err
    assert "penstock: " not in out + err


def test_ctrl_c_says_so_and_is_a_failed_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("penstock.simulation.play.run", interrupted)
    status, out, err = run("simulate")
    assert (status, out, err.strip()) == (1, "", "penstock: interrupted")


def test_a_table_is_not_cut_where_there_is_no_terminal(run: Run, trace: Path) -> None:
    _, out, _ = run("compare", "--trace", trace, "--policies", "fixed,threshold-c")
    assert "\N{HORIZONTAL ELLIPSIS}" not in out


def test_a_benchmark_below_what_is_wanted_fails(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(**_: object) -> list[Figure]:
        return [Figure(name="speed", value=3.0, unit="M slots/s", at_least=wanted[expected])]

    monkeypatch.setattr("penstock.bench.simulator.run_benchmarks", measured)
    wanted = (2.0, 4.0)
    for expected in (0, 1):
        status, out, _ = run("bench", "--json")
        assert status == expected
        assert json.loads(out)["figures"][0]["ok"] is (expected == 0)
        assert run("bench")[0] == expected


def test_reproduce_gives_the_list_of_claims_and_a_page(
    run: Run, rates_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = [
        Claim(id="a", source="seed 1", printed=".5", measured=0.5, shown=".5", tolerance=0.0),
        Claim(id="b", source="seed 1", printed=".5", measured=0.7, shown=".7", tolerance=0.02, note="chance"),
        Claim(id="c", source="seed 1", printed=None, measured=0.7, shown=".7", asked=less_than(0.6)),
    ]
    pretended = Reproduction(title="A table", settings=("as it was",), run=lambda *_: Findings(claims=claims))
    monkeypatch.setattr("penstock.papers.reproductions.REPRODUCTIONS", {"a-table": pretended})
    page = tmp_path / "page.html"
    status, out, _ = run("reproduce", "--data", rates_directory.parent, "--json", "--out", page)
    assert status == 0
    assert [(claim["id"], claim["holds"]) for claim in json.loads(out)["claims"]] == [
        ("a", True),
        ("b", False),
        ("c", None),
    ]
    ours = json.loads(out)["claims"][2]
    assert (ours["printed"], ours["asked"], ours["met"], ours["verdict"]) == (
        None,
        "<0.6",
        False,
        "not printed",
    )
    assert {"id", "source", "printed", "measured", "tolerance", "holds", "note"} <= json.loads(out)["claims"][
        0
    ].keys()
    assert "A table" in page.read_text()
    _, out, _ = run("reproduce", "--data", rates_directory.parent, "--out", page)
    assert "differs: b: printed .5, measured .7. chance" in out
    assert "missed: c: asked of ourselves <0.6, measured .7" in out
    assert "1 claims hold, 0 hold within a range only, 1 do not" in out


def test_a_finished_run_is_not_written_over(run: Run, tmp_path: Path) -> None:
    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "summary.json").write_text("{}")
    status, _, err = run("run", "paced", "--out", tmp_path / "done")
    assert status == 2
    assert "it holds a finished run" in err


def test_help_teaches(run: Run) -> None:
    for command in ("run", "simulate", "compare", "reproduce", "sweep", "replay", "bench"):
        status, out, _ = run(command, "--help")
        assert status == 0
        assert "Usage" in out


def test_an_application_is_simulated_under_an_application_policy(run: Run, trace: Path) -> None:
    words = ("--application", "diamond", "--application-policy", "lohrmann-0", "--infrastructure", "A:1")
    status, out, err = run("simulate", "--trace", trace, *words, "--json")
    assert (status, err) == (0, "")
    answer = json.loads(out)
    assert (answer["policy"], answer["application_policy"]) == (None, "lohrmann-0")
    assert answer["downtime_pct"] == pytest.approx(answer["reconfigurations_pct"] / 6, rel=0.05)
    status, out, _ = run("simulate", "--trace", trace, *words)
    assert status == 0
    assert "lohrmann-0 (application)" in out
    assert "downtime" in out


def test_application_policies_are_compared_side_by_side(run: Run, trace: Path) -> None:
    words = ("--application", "pipeline", "--policies", "threshold-c,threshold-s", "--infrastructure", "A:3")
    managers = ("--application-policies", "nobody,token-bucket,drs-s")
    status, out, _ = run("compare", "--trace", trace, *words, *managers, "--json")
    assert status == 0
    assert {row["policy"] for row in json.loads(out)["policies"]} == {
        "threshold-c",
        "threshold-s",
        "threshold-c + token-bucket",
        "threshold-s + token-bucket",
        "drs-s (application)",
    }


def test_names_of_one_and_of_several_are_asked_for_alike(run: Run, trace: Path) -> None:
    """`simulate` and `run` say --policy, which is what people type after `compare`, too."""
    words = ("compare", "--trace", trace, "--application", "pipeline", "--infrastructure", "A:3", "--json")
    plural = ("--policies", "threshold-c", "--application-policies", "nobody,token-bucket")
    singular = ("--policy", "threshold-c", "--application-policy", "nobody,token-bucket")
    assert run(*words, *singular) == run(*words, *plural)
    status, _, err = run("compare", "--policy", "nope")
    assert (status, "policy 'nope': unknown" in err) == (2, True)
    wrong = ("--policy", "nope", "--infrastructure", "A:3", "--out", "table")
    assert "policy 'nope': unknown" in run("sweep", "--trace", trace, *wrong)[2]


_MANAGED = ("--application", "diamond", "--policy", "threshold-c", "--application-policy", "token-bucket")


def test_nodes_have_room_and_send_replicas_away(run: Run, trace: Path) -> None:
    words = (*_MANAGED[:-1], "grant-all", "--infrastructure", "A:1", "--slo-ms", 100, "--json")
    status, out, _ = run("simulate", "--trace", trace, *words, "--hosts", "3:4:5", "--migrate-above", "0.1")
    assert status == 0
    placed = json.loads(out)
    assert placed["migrations"] > 0
    assert placed["mean_replicas"] <= 12
    status, out, _ = run("simulate", "--trace", trace, *words)
    assert json.loads(out)["migrations"] is None


def test_migrate_above_is_short_for_a_node_policy_and_its_parameter(run: Run, trace: Path) -> None:
    words = (*_MANAGED[:-1], "grant-all", "--slo-ms", 100, "--json", "--hosts", "3:4:5")
    found = []
    for how in (
        ("--migrate-above", "0.1"),
        ("--node-policy", "sender-initiated", "--set", "target_utilisation=0.1"),
        ("--node-policy", "sender-initiated", "--set", "sender-initiated.target_utilisation=0.9"),
    ):
        status, out, _ = run("simulate", "--trace", trace, *words, *how)
        assert status == 0
        found.append(json.loads(out)["migrations"])
    assert found[0] == found[1] > found[2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--runtime", "spark", "--trace", "x"), "--trace: has no effect with --runtime spark"),
        (("--runtime", "spark", "--threads", "1"), "--threads: has no effect with --runtime spark"),
        (("--minutes", "1"), "--minutes: has no effect with --runtime sim"),
        (("--policies", "ql", "--set", "gamma=.9", "--set", "gamma=.8"), "has 'gamma' set already"),
        (
            ("--application", "diamond", "--application-policies", "drs-c", "--set", "threshold=.4"),
            "application policy 'drs-c' decides for all operators, so policy 'threshold-c' is never asked",
        ),
    ],
)
def test_what_would_have_no_effect_is_refused(run: Run, words: tuple[str, ...], message: str) -> None:
    status, out, err = run("compare", *words)
    assert (status, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("run", "paced", "--retune-every", "9"),
            "--retune-every: has no effect without an application policy",
        ),
        (("run", "paced", "--slot", "2"), "--slot: has no effect without --rates"),
        (("run", "paced", "--rates", "x", "--low", "2"), "--low: has no effect with --rates"),
        (
            ("run", "pipeline", "--policy", "ql", "--application-policy", "drs-c"),
            "--policy: has no effect under 'drs-c', which decides for all operators",
        ),
        (
            ("simulate", "--application", "pipeline", "--policy", "ql", "--application-policy", "drs-c"),
            "--policy: has no effect under 'drs-c'",
        ),
    ],
)
def test_an_option_without_effect_is_refused_before_anything_runs(
    run: Run, words: tuple[str, ...], message: str
) -> None:
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert message in err


def test_a_parameter_matters_where_operators_also_decide_with_nobody_above_them(
    run: Run, trace: Path
) -> None:
    words = (
        "--application",
        "diamond",
        "--policies",
        "threshold-c",
        "--set",
        "threshold=.4",
        "--slo-ms",
        300,
    )
    status, out, _ = run(
        "compare",
        "--trace",
        trace,
        *words,
        "--application-policies",
        "nobody,drs-c",
        "--slo-ms",
        300,
        "--json",
    )
    assert status == 0
    assert "drs-c (application)" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--application-policy", "drs-c"), "give --application"),
        (("--application", "diamond", "--application-policy", "drs"), "did you mean 'drs-"),
        (
            ("--application", "pipeline", "--application-policy", "lohrmann-c", "--slo-ms", 6.5),
            "takes 10.95 ms of service alone on node type 'a2', the only one used (speedup 0.7)",
        ),
        (("--application", "diamond", "--slo-ms", 3), "path split-slow-join takes 5.009 ms"),
        (("--application", "diamond", "--path-slo-ms", "split-join=9"), "no path split-join"),
        (("--application", "diamond", "--path-slo-ms", "split"), "--path-slo-ms 'split'"),
        (
            ("--application", "multi-sink", *("--path-slo-ms", "root-short=20") * 2),
            "path root-short has 2 limits",
        ),
        (
            ("--application", "diamond", "--hosts", "4:8:5"),
            "nobody manages the application; give --application-policy",
        ),
        ((*_MANAGED, "--hosts", "4:8"), "hosts '4:8': give NODES:SLOTS:MS"),
        ((*_MANAGED, "--hosts", "0:8:5"), "hosts 0:8: give at least one node"),
        ((*_MANAGED, "--hosts", "4:8:-1"), "a delay of -1 ms"),
        ((*_MANAGED, "--hosts", "4:8:inf"), "a delay of inf ms"),
        ((*_MANAGED, "--hosts", "1:1:5", "--infrastructure", "A:1"), "has room left"),
        ((*_MANAGED, "--migrate-above", "0.5"), "give hosts"),
        (
            (*_MANAGED, "--hosts", "4:8:5", "--migrate-above", ".5", "--node-policy", "sender-initiated"),
            "--node-policy is given, too",
        ),
        ((*_MANAGED, "--hosts", "4:8:5", "--node-policy", "sender"), "node policy 'sender': unknown"),
        (
            (*_MANAGED, "--hosts", "4:8:5", "--migrate-above", "1.5"),
            "target_utilisation=1.5: it must be above 0 and below 1",
        ),
        (("--application", "top-routes"), "--application-policy grant-all"),
    ],
)
def test_what_cannot_be_simulated_is_one_line_that_says_which(
    run: Run, trace: Path, words: tuple[object, ...], message: str
) -> None:
    status, out, err = run("simulate", "--trace", trace, *words)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_names_with_brackets_are_shown_as_they_are(run: Run, tmp_path: Path) -> None:
    odd = tmp_path / "taxi[bold].txt"
    status, out, _ = run("trace", "synth", "--out", odd, "--slots", 10)
    assert status == 0
    assert "taxi[bold].txt" in out.replace("\n", "")
    assert "taxi[bold]" in run("trace", "describe", odd)[1]
    page = tmp_path / "o[" / "red].html"
    status, out, _ = run("compare", "--trace", odd, "--policies", "fixed", "--out", page)
    assert status == 0
    assert "red].html" in out.replace("\n", "")


def test_where_there_is_no_terminal_nothing_but_errors_goes_to_standard_error(run: Run, trace: Path) -> None:
    assert run("compare", "--trace", trace, "--policies", "fixed", "--json")[2] == ""
    too_many = ("--infrastructure", "A:10", "--max-replicas", 20)
    status, _, err = run("compare", "--trace", trace, "--policies", "vi", *too_many)
    assert status == 2
    assert err.count("\n") == 1


def test_the_same_comparison_writes_the_same_page(run: Run, trace: Path, tmp_path: Path) -> None:
    pages = [tmp_path / f"{threads}.html" for threads in (1, 2)]
    for threads, page in enumerate(pages, start=1):
        run("compare", "--trace", trace, "--policies", "ql,fixed", "--threads", threads, "--out", page)
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_a_full_disk_behind_standard_output_is_one_line(
    run: Run, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("penstock.cli.screen.print_json", full)
    status, _, err = run("simulate", "--trace", trace, "--json")
    assert (status, err) == (1, "penstock: cannot continue: No space left on device\n")


def test_a_history_does_not_overwrite_its_trace(run: Run, trace: Path) -> None:
    before = trace.read_text()
    status, _, err = run("simulate", "--trace", trace, "--history", trace)
    assert status == 2
    assert "that is the trace" in err
    assert trace.read_text() == before


def test_an_application_has_service_times_of_its_own(run: Run, tmp_path: Path) -> None:
    unnamed = tmp_path / "mine.txt"
    unnamed.write_text("100\n200\n")
    assert run("simulate", "--application", "diamond", "--trace", unnamed, "--policy", "fixed")[0] == 0
    status, _, err = run("simulate", "--application", "diamond", "--service-rate", 10)
    assert status == 2
    assert "their own service times" in err


def test_a_change_late_in_a_short_run_is_in_it(run: Run, tmp_path: Path) -> None:
    short = tmp_path / "taxi-short.txt"
    short.write_text("10\n" * 4)
    history = tmp_path / "h.csv"
    words = ("--trace", short, "--policy", "fixed", "--history", history)
    assert run("simulate", *words, "--rate-change", "2@0.99")[0] == 0
    assert [line.split(",")[1] for line in history.read_text().splitlines()[1:]] == ["10.0"] * 3 + ["20.0"]


def test_replay_decides_a_journal_again_and_names_the_first_difference(run: Run, tmp_path: Path) -> None:
    graph = pipeline("counting", Operator(name="count", service_time_s=0.005, max_replicas=4))
    objective = Objective(response_time_s=0.04)
    made = ControllerSpec(
        application=graph,
        objective=objective,
        node_types=(NodeType(name="worker", speedup=1.0, price=1.0),),
        operators=operator_specs(graph, objective),
        operator_policy=Manager(name="threshold-c"),
        safety=UNGUARDED,
    )
    controller, memory = build_controller(made)
    operator = OperatorObservation(
        operator="count",
        at_s=30.0,
        replicas=Replicas((1,)),
        arrival_rate=190.0,
        response_time_s=0.1,
        utilisation=0.95,
    )
    seen = ApplicationObservation(at_s=30.0, response_time_s=0.1, operators=(operator,))
    decided, _ = plan(controller, memory, seen)
    assert decided.granted
    path = tmp_path / "run" / "journal.jsonl"
    with JournalFile(path) as journal:
        journal.append(Header(controller=made))
        journal.append(Ticked(seen=seen, plan=decided))
    status, out, _ = run("replay", path.parent)
    assert (status, out.strip()) == (0, f"{path}: 1 rounds decided again, no difference")
    path.write_text(path.read_text().replace("+1 worker", "+2 worker"))
    status, out, _ = run("replay", path, "--json")
    assert status == 1
    assert json.loads(out)["difference"]["part"] == "decision of operator 'count'"
    path.write_text("x\n")
    status, out, err = run("replay", path)
    assert (status, out) == (2, "")
    assert err.startswith(f"penstock: journal {path}: line 1: not JSON")
