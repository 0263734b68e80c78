"""The docs say what the code is."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path

import pytest

import penstock
from penstock.apps.registry import application_entry
from penstock.control.safety import GUARDS
from penstock.control.safety_settings import NEEDED_METRICS, UNGUARDED, SafetySettings
from penstock.live import attach
from penstock.live.settings import controller_for
from penstock.policy.registry import Level, entries
from penstock.reports.policy_tables import with_tables

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = ROOT / "docs" / "examples"
# Users import from `penstock`. Beside it there is the contracts' package, and the data pipeline, a package
# with a front door of its own.
FRONT_DOORS = ("penstock.testing", "penstock.data")


def listings(page: Path) -> list[str]:
    """The blocks of Python on a page."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def imported(code: str) -> Iterator[tuple[str, str]]:
    """Modules that code imports, with the name it takes from each; the name is empty for a whole module."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", one.name) for one in node.names)
        elif isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names)


def back_doors(code: str) -> list[str]:
    """Modules of Penstock that code imports although they are not for users."""
    return [
        module
        for module, _ in imported(code)
        if module.startswith("penstock.")
        and not any(module == door or module.startswith(f"{door}.") for door in FRONT_DOORS)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_of_policies_are_those_of_the_registry(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert with_tables(text) == text, f"{page}: run `make docs`"


def test_every_policy_is_in_the_docs() -> None:
    text = (ROOT / "docs" / "policies" / "README.md").read_text(encoding="utf-8")
    for level in Level:
        for name, one in entries(level).items():
            assert f"`{name}`" in text or not one.policy.__module__.startswith("penstock."), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_the_docs_import_from_penstock_is_there(page: Path) -> None:
    for code in listings(page):
        for module, name in imported(code):
            assert module != "penstock" or not name or hasattr(penstock, name), f"{page}: {name}"


def test_what_stands_at_the_top_of_the_package_can_be_imported() -> None:
    for name in penstock.__all__:
        assert getattr(penstock, name) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(
        r"\]\(([^)#:\s]+\.(?:md|py|png))(?:#[^)]*)?\)", page.read_text(encoding="utf-8")
    ):
        assert (page.parent / target).exists(), f"{page}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_listings_import_from_the_front_door_only(page: Path) -> None:
    for code in listings(page):
        assert not back_doors(code), page


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_examples_import_from_the_front_door_only(example: Path) -> None:
    assert not back_doors(example.read_text(encoding="utf-8"))


def test_a_back_door_is_noticed() -> None:
    assert back_doors("def f():\n    from penstock.perf.deployments import (\n        after,\n    )\n") == [
        "penstock.perf.deployments"
    ]
    assert back_doors("import penstock.datasets\n") == ["penstock.datasets"]
    assert not back_doors(
        "from penstock import after\nfrom penstock.testing.runtime import RuntimeContract\n"
    )


def test_listings_of_add_a_policy_are_the_examples() -> None:
    plain, contract, compiled = listings(ROOT / "docs" / "add-a-policy.md")
    assert plain == (EXAMPLES / "mine.py").read_text(encoding="utf-8")
    assert compiled == (EXAMPLES / "mine_compiled.py").read_text(encoding="utf-8")
    # The rest of that file is about the command line.
    assert contract in (EXAMPLES / "test_mine.py").read_text(encoding="utf-8")


def drawn_layers(page: str) -> list[set[str]]:
    """The layers of the first drawing on a page, from the top; `|` separates those side by side."""
    drawing = page.split("```")[1]
    lines = [re.split(r"\s{2,}", line.strip())[0] for line in drawing.splitlines()]
    layers = [layer for line in lines if line not in ("", "|") for layer in line.split(", ")]
    return [{part.strip() for part in layer.split("|")} for layer in layers]


def contracted_layers(settings: str) -> list[set[str]]:
    """The same by import-linter's contracts: layers, and packages split into parts that are independent."""
    contracts = tomllib.loads(settings)["tool"]["importlinter"]["contracts"]
    [layers] = [one["layers"] for one in contracts if one["type"] == "layers"]
    split: dict[str, set[str]] = {}
    for one in contracts:
        if one["type"] == "independence":
            for module in one["modules"]:
                _, package, part = module.split(".")
                split.setdefault(package, set()).add(f"{package}.{part}")
    return [{part for name in layer.split(" | ") for part in split.get(name, {name})} for layer in layers]


def test_layers_are_drawn_as_they_are_enforced() -> None:
    drawn = drawn_layers((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert drawn == contracted_layers((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def section(page: str, title: str) -> str:
    """What stands under a title, up to the next of its kind."""
    [found] = re.findall(
        rf"^## {title}\n(.*?)(?=^## |\Z)",
        (ROOT / "docs" / page).read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    return str(found)


def cells(text: str) -> list[list[str]]:
    """All rows of tables, the heads included."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows]


def test_defaults_of_the_safety_chain_are_those_in_the_docs() -> None:
    usual = vars_of(SafetySettings())
    rows = [row for row in cells(section("control.md", "The safety chain")) if len(row) == 3]
    said = [found for row in rows for found in re.findall(r"`(\w+)`(?: \(([\d.]+|true|false)\b)?", row[2])]
    assert {name for name, _ in said} >= {name for name in usual if name != "changes_window_s"}
    for name, value in said:
        if value:
            assert usual[name] == json.loads(value), name
    guards = [row[0].strip("`") for row in rows[1:]]
    assert guards == [guard.__name__ for guard in GUARDS]
    for row in rows[1:]:  # the first setting of a guard turns it off
        for name in re.findall(r"`(\w+)`", row[2])[:1]:
            assert name not in usual or not vars_of(UNGUARDED)[name], row[0]


def test_settings_of_live_runs_and_attached_queries_are_those_in_the_docs() -> None:
    app = application_entry("paced").on_spark(
        objective=penstock.Objective(response_time_s=5), max_replicas=3, protocol=penstock.Method.LIVE
    )
    attached = partial(
        attach._controller,
        objective=penstock.Objective(response_time_s=5),
        parameters=None,
        max_replicas=3,
        interval_s=10.0,
        advise=False,
        seed=1,
        safety=lambda settings: settings,
    )
    usual, needed = SafetySettings(), ", ".join(NEEDED_METRICS)
    for policy, needed_in_a_run in (("threshold-c", needed), ("adaptive", "")):
        live = controller_for(app, policy=policy).safety
        on_query = attached(manager_policy=policy).safety
        assert live is not None
        assert on_query is not None
        assert live.stale_after_s == 15  # which is how it is said there
        assert ", ".join(live.needed_metrics) == needed_in_a_run
        assert on_query.needed_metrics == NEEDED_METRICS
        rows = [row for row in cells(section("control.md", "The safety chain")) if len(row) == 4]
        assert {row[0].strip("`") for row in rows[1:]} == {
            name
            for name in vars_of(usual)
            if len({str(getattr(one, name)) for one in (usual, live, on_query)}) > 1
            and name not in ("anticipating", "max_replicas")
        } | {"needed_metrics"}
        for name, *said in rows[1:]:
            for one, text in zip((usual, live, on_query), said, strict=True):
                value = re.match(r"[\d.]+|true|false", text)
                if value and "stale" not in name:
                    assert getattr(one, name.strip("`")) == json.loads(value[0]), name


def vars_of(settings: SafetySettings) -> dict[str, object]:
    return {one.name: getattr(settings, one.name) for one in fields(settings)}


def test_the_front_door_opens_without_any_slow_library() -> None:
    """What a compiled policy needs is there, and numba waits until something is compiled."""
    program = (
        "import sys, penstock\n"
        "assert not {'numpy', 'numba', 'pyspark'} & set(sys.modules)\n"
        "from penstock import NOWHERE, CompiledPolicy, Deployments, Ints, Seen, after, deployments, step_of\n"
        "assert not {'numba', 'pyspark'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
