"""Make the tables of policies in the docs anew, from the registry: `make docs`."""

from pathlib import Path

from penstock.reports.policy_tables import with_tables

for path in (Path("README.md"), *sorted(Path("docs").rglob("*.md"))):
    before = path.read_text(encoding="utf-8")
    after = with_tables(before)
    if after != before:
        path.write_text(after, encoding="utf-8")
        print(path)
