"""Journals that earlier versions recorded are read, and every decision in them is made again.

Those in tests/golden/journals are of schema 1, written by the last version that wrote it. `threshold`
and `bucket` are of runs on Spark; the others of its live controller over two made-up queues: a tuning in
`tuned`, a person's override in `model-based`, two node types in `threshold-half`. Later rounds are cut off.
"""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from safety_cases import controller_spec

from penstock.control.build import build_controller
from penstock.control.journal import SCHEMA, Entry, Header, Retuned, Ticked, decoded, encoded
from penstock.control.replay import replay
from penstock.control.spec import Manager
from penstock.domain.errors import InputError
from penstock.journal_file import read_journal

JOURNALS = Path(__file__).parents[2] / "golden" / "journals"
RECORDED = sorted(path.stem for path in JOURNALS.glob("*.jsonl"))
# As these policies decided then: the busiest replica stood for all.
THRESHOLD = Manager(name="threshold-c", parameters={"worst_replica": True})
WHO_DECIDED = {
    "bucket": (
        Manager(name="ql-pds-plus"),
        Manager(name="token-bucket", parameters={"low_s": 5.0, "high_s": 9.0, "period_s": 10.0}),
    ),
    "centralised": (
        THRESHOLD,
        Manager(name="centralised"),
    ),
    "centralised-rl": (
        THRESHOLD,
        Manager(name="centralised-rl"),
    ),
    "drs": (THRESHOLD, Manager(name="drs-c")),
    "fixed": (Manager(name="fixed", parameters={"replicas": 2}), Manager(name="grant-all")),
    "model-based": (Manager(name="model-based"), Manager(name="grant-all")),
    "q-learning": (
        Manager(name="ql"),
        Manager(name="token-bucket", parameters={"low_s": 0.012, "high_s": 0.024, "period_s": 10.0}),
    ),
    "threshold": (THRESHOLD, Manager(name="grant-all")),
    "threshold-half": (
        Manager(name="threshold-s", parameters={"threshold": 0.5, "worst_replica": True}),
        Manager(name="grant-all"),
    ),
    "tuned": (Manager(name="drs-c"), Manager(name="tuned")),
}


def of(name: str) -> list[Entry]:
    return read_journal(JOURNALS / f"{name}.jsonl")


def first_line(name: str) -> dict[str, Any]:
    """The header, as it stands in the file."""
    lines = (JOURNALS / f"{name}.jsonl").read_text().splitlines()
    found: dict[str, Any] = next(data for line in lines if (data := json.loads(line))["kind"] == "Header")
    return found


def header_in(entries: list[Entry]) -> Header:
    return next(entry for entry in entries if isinstance(entry, Header))


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_journal_replays_without_a_difference(name: str) -> None:
    assert first_line(name)["schema"] == 1
    entries = of(name)
    rounds = [entry for entry in entries if isinstance(entry, Ticked)]
    assert rounds
    assert any(entry.plan.granted or entry.plan.vetoes for entry in rounds), "it shows nothing"
    answer = replay(entries, build_controller)
    assert (answer.ticks, answer.difference) == (len(rounds), None)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_journal_is_written_in_the_words_of_today(name: str) -> None:
    entries = of(name)
    assert header_in(entries).schema == SCHEMA
    assert [decoded(encoded(entry)) for entry in entries] == entries


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_header_says_who_decided_and_what_was_asked_of_them(name: str) -> None:
    spec = header_in(of(name)).controller
    assert (spec.operator_policy, spec.application_policy) == WHO_DECIDED[name]


def test_a_recorded_tuning_counts_from_where_it_stands() -> None:
    entries = of("tuned")
    (swap,) = [place for place, entry in enumerate(entries) if isinstance(entry, Retuned)]
    rounds_before = sum(isinstance(entry, Ticked) for entry in entries[:swap])
    different = replay([*entries[:swap], *entries[swap + 1 :]], build_controller).difference
    assert different is not None
    assert different.tick > rounds_before


# --- A name in a file never imports code. -------------------------------------------------------


def of_schema_1(level: str, policy: str) -> dict[str, Any]:
    data = first_line("threshold")
    data["policies"][level] = policy
    return data


def of_today(level: str, policy: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(encoded(Header(controller=controller_spec())))
    data["controller"][level] = {"name": policy, "parameters": {}}
    return data


NAMING = {
    "schema 1, policy": lambda name: of_schema_1("policy", name),
    "schema 1, application policy": lambda name: of_schema_1("application_policy", name),
    "policy": lambda name: of_today("operator_policy", name),
    "application policy": lambda name: of_today("application_policy", name),
    "node policy": lambda name: of_today("node_policy", name),
}


@pytest.mark.parametrize("level", NAMING)
@pytest.mark.parametrize("module", ["nosuch_module", "module_that_is_there"])
def test_a_header_that_names_a_class_is_refused_and_nothing_is_imported(
    level: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_that_is_there.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    journal = tmp_path / "journal.jsonl"
    journal.write_text(json.dumps(NAMING[level](f"{module}:Policy")) + "\n")
    with pytest.raises(InputError, match=rf"policy '{module}:Policy': not loaded; .*give --policy"):
        replay(read_journal(journal), partial(build_controller, nodes=("node",)))
    assert module not in sys.modules
