"""`penstock plan` as a user or a script meets it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "plan"
_FILES = ("--app", EXAMPLES / "top-routes.toml", "--network", EXAMPLES / "backbone.toml")
_CURRENT = """
[deployment]
dataSource = ["New York"]
metronome = ["New York"]
parser = ["Hartford"]
filterByCoordinates = ["Hartford"]
computeRouteID = ["Cleveland"]
countByWindow = ["Cleveland"]
partialRank = ["Chicago"]
globalRank = ["Chicago"]
"""


def test_a_plan_is_one_json_object(run: Run) -> None:
    status, out, err = run("plan", *_FILES, "--json")
    answer = json.loads(out)
    assert (status, err, answer["status"], answer["gap"]) == (0, "", "optimal", 0.0)
    assert answer["plan"]["dataSource"] == ["New York"]
    assert answer["response_time_s"] <= 0.175


def test_words_a_page_and_the_programme(run: Run, tmp_path: Path) -> None:
    current = tmp_path / "now.toml"
    current.write_text(_CURRENT)
    page, programme = tmp_path / "plan.html", tmp_path / "plan.lp"
    status, out, _ = run(
        "plan", *_FILES, "--current", current, "--restricted", "--out", page, "--write-lp", programme
    )
    assert status == 0
    assert "no plan one step from what runs is better" in out
    assert "scaled out from Chicago" in out  # partialRank cannot take 3,000 tuples/s alone
    assert "<html" in page.read_text()
    text = programme.read_text()
    assert text.startswith("Minimize")
    assert text.endswith("End\n")


def test_downtime_weighed_heavily_changes_nothing_that_need_not_change(run: Run, tmp_path: Path) -> None:
    current = tmp_path / "now.toml"
    current.write_text(_CURRENT.replace('["Chicago"]\nglobalRank', '["Chicago", "Cleveland"]\nglobalRank'))
    words = ("plan", *_FILES, "--current", current, "--json")
    _, calm, _ = run(*words, "--objective", "0,.01,.99")
    _, cheap, _ = run(*words, "--objective", ".5,.5,0")
    assert json.loads(calm)["downtime_s"] <= json.loads(cheap)["downtime_s"]


def _measured(path: Path, executor_s: float, first_task_s: float) -> Path:
    names = ("a replica alone: grant to executor", "a replica alone: grant to first task on tuples")
    figures = [
        {"name": f"{name}, median of 10", "value": value, "unit": "s", "ok": True}
        for name, value in zip(names, (executor_s, first_task_s), strict=True)
    ]
    path.write_text(json.dumps({"figures": figures}))
    return path


def test_where_spark_restarts_everything_a_change_takes_what_was_measured(run: Run, tmp_path: Path) -> None:
    current = tmp_path / "now.toml"
    current.write_text(_CURRENT)
    words = ("plan", *_FILES, "--current", current, "--json", "--spark-times")
    status, out, err = run(*words, _measured(tmp_path / "spark.json", 1.5, 3.25))
    assert (status, err) == (0, "")
    # partialRank cannot take 3,000 tuples/s alone: one change at the least, so all wait for 1.75 s and
    # for an executor.
    assert json.loads(out)["downtime_s"] >= 3.25
    status, _, err = run(*words, _measured(tmp_path / "spark.json", 3.0, 1.0))
    assert (status, "the task cannot come first" in err) == (2, True)
    (tmp_path / "spark.json").write_text('{"figures": []}')
    status, _, err = run(*words, tmp_path / "spark.json")
    assert (status, "was not measured" in err) == (2, True)
    (tmp_path / "spark.json").write_text("rubbish")
    status, _, err = run(*words, tmp_path / "spark.json")
    assert (status, "not what" in err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--objective", "1,2"), "three numbers"),
        (("--objective", ".5,.6,.4"), "must sum to 1"),
        (("--restricted",), "needs a current deployment"),
        (("--current", "/nowhere.toml"), "cannot read"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(run: Run, words: tuple[str, ...], said: str) -> None:
    status, out, err = run("plan", *_FILES, *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_bound_that_stands_in_the_way_is_named(run: Run, tmp_path: Path) -> None:
    tight = tmp_path / "tight.toml"
    tight.write_text((EXAMPLES / "top-routes.toml").read_text().replace("0.175", "0.03"))
    status, _, err = run("plan", "--app", tight, *_FILES[2:])
    assert status == 2
    assert "response time" in err


def test_managers_that_plan_are_compared_on_hosts_with_delays(run: Run) -> None:
    words = ("compare", "--application", "pipeline", "--policies", "threshold-c", "--hosts", "2:3:5")
    status, out, err = run(
        *words,
        "--application-policies",
        "edrp,redrp",
        "--max-replicas",
        "2",
        "--slots",
        "30",
        "--seeds",
        "1",
        "--json",
    )
    assert status == 0, err
    assert "edrp" in out
    assert "redrp" in out
    status, _, err = run("compare", "--hosts", "2:3:5", "--slots", "30")
    assert (status, "give --application" in err) == (2, True)
