"""The docs say what the code is."""

import re
from pathlib import Path

import pytest

import penstock
from penstock.policy.registry import Level, entries
from penstock.reports.policy_tables import with_tables

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


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
    for names in re.findall(r"^from penstock import (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
        for name in names.split(","):
            assert hasattr(penstock, name.strip()), f"{page}: {name}"


def test_what_stands_at_the_top_of_the_package_can_be_imported() -> None:
    for name in penstock.__all__:
        assert getattr(penstock, name) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(
        r"\]\(([^)#:\s]+\.(?:md|py|png))(?:#[^)]*)?\)", page.read_text(encoding="utf-8")
    ):
        assert (page.parent / target).exists(), f"{page}: {target}"
