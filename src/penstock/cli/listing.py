"""`penstock policies`: what there is to choose from, with every parameter."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import options, screen

if TYPE_CHECKING:
    from penstock.policy.parameters import Parameter
    from penstock.policy.registry import PolicyEntry


def policies(
    name: Annotated[str | None, typer.Argument(help="One policy, or module:Class; all if left out.")] = None,
    json_output: options.JsonOption = False,
) -> None:
    """List the policies of operators, applications and nodes, and the parameters --set takes.

    Example: penstock policies ql-pds
    """
    from penstock.cli.policy_options import look_here
    from penstock.policy.registry import Level, broken, entries, load_any

    if name is not None and ":" in name:
        look_here()
        load_any(name)
    found = [one for level in Level for one in entries(level).values() if name in (None, one.name)]
    if not found and name is not None:
        load_any(name)  # names the nearest one
    titles = {
        Level.OPERATOR: "For an operator (--policy)",
        Level.APPLICATION: "For an application (--application-policy)",
        Level.NODE: "For a node (--node-policy)",
    }
    if json_output:
        screen.print_json({"policies": [_as_json(one) for one in found]})
        return
    for problem in broken():
        screen.complain(problem)
    if name is None:
        for level in Level:
            of_level = [one for one in found if one.level is level]
            screen.print_table(
                ("policy", "what it is", "parameters"), _families(of_level), title=titles[level], words=True
            )
        return
    for one in found:
        screen.out.print(f"{one.owner}: {one.title}")
        screen.print_table(
            ("parameter", "default", "allowed", "what it is"),
            [(p.name, _default(one, p), p.bounds, p.help) for p in one.parameters.values()],
            words=True,
        )


def _families(entries: "Sequence[PolicyEntry]") -> list[tuple[str, str, str]]:
    """A row for every class of policies, whatever names it goes by."""
    names: dict[type, list[str]] = {}
    for one in entries:
        names.setdefault(one.policy, []).append(one.name)
    first = {one.policy: one for one in reversed(entries)}
    return [
        (", ".join(names[policy]), first[policy].title, ", ".join(first[policy].parameters))
        for policy in names
    ]


def _default(entry: "PolicyEntry", parameter: "Parameter") -> str:
    published = entry.published.get(parameter.name)
    text = "none" if parameter.default is None else str(parameter.default)
    return text if published is None else f"{text} (as published {published})"


def _as_json(entry: "PolicyEntry") -> dict[str, Any]:
    from dataclasses import asdict

    from penstock.policy.parameters import USUAL

    return {
        "name": entry.name,
        "level": entry.level.value,
        "title": entry.title,
        "traits": asdict(entry.traits),
        "parameters": [
            {
                "name": p.name,
                "type": p.kind.__name__,
                "default": None if p.default is USUAL else p.default,
                "allowed": p.bounds,
                "help": p.help,
            }
            for p in entry.parameters.values()
        ],
    }
