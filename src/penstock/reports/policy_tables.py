"""Tables of policies, parameters and applications for the docs, from their entries; a test compares them."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby

from penstock.apps.registry import applications
from penstock.policy.parameters import USUAL, Parameter
from penstock.policy.registry import Level, PolicyEntry, entries

BEGIN, END = "<!-- from the registry: {name} -->", "<!-- end -->"


def policy_table(level: Level) -> str:
    """Names, descriptions, traits and parameters, as Markdown."""
    rows = [
        f"| {_names(family)} | {family[0].title} | {_traits(family)} | {_settable(family[0])} |"
        for family in _families(level)
    ]
    return "\n".join(("| Names | What it is | Traits | Parameters |", "|---|---|---|---|", *rows))


def short_table(level: Level) -> str:
    """Names and descriptions."""
    rows = [f"| {_names(family)} | {family[0].title} |" for family in _families(level)]
    return "\n".join(("| Names | What it is |", "|---|---|", *rows))


def parameter_table(level: Level) -> str:
    """Every parameter with its default and allowed values."""
    rows = [
        f"| {_names(family)} | `{one.name}` | {one.help} | {_default(family[0], one)} | {one.bounds} |"
        for family in _families(level)
        for one in family[0].parameters.values()
    ]
    return "\n".join(
        ("| Policy | Parameter | What it is | Default | Allowed |", "|---|---|---|---|---|", *rows)
    )


def application_table() -> str:
    """Every application: its names, its operators, and the objective of a live run that is given none."""
    rows = [
        f"| {', '.join(f'`{name}`' for name in (one.name, *one.aliases))} | {one.title} "
        f"| {', '.join(operator.name for operator in one.graph(1).operators)} | {one.objective_s:g} s |"
        for one in applications().values()
    ]
    return "\n".join(
        ("| Names | What it is | Operators | Objective of `run`, if left out |", "|---|---|---|---|", *rows)
    )


TABLES: dict[str, Callable[[], str]] = {
    "applications": application_table,
    **{f"{level.value} policies in short": partial(short_table, level) for level in Level},
    **{f"{level.value} policies": partial(policy_table, level) for level in Level},
    **{f"parameters of {level.value} policies": partial(parameter_table, level) for level in Level},
}


def with_tables(text: str) -> str:
    """A document with the text between its markers regenerated."""
    for name, table in TABLES.items():
        begin = BEGIN.format(name=name)
        if begin in text:
            before, _, rest = text.partition(begin)
            _, _, after = rest.partition(END)
            text = f"{before}{begin}\n{table()}\n{END}{after}"
    return text


def _families(level: Level) -> list[list[PolicyEntry]]:
    """Entries of the same class, built in, in the order of names."""
    own = [one for one in entries(level).values() if one.policy.__module__.startswith("penstock.")]
    kinds = sorted(own, key=lambda one: (one.policy.__module__, one.policy.__name__, one.name))
    found = [list(group) for _, group in groupby(kinds, key=lambda one: one.policy)]
    return sorted(found, key=lambda family: family[0].name)


def _names(family: Iterable[PolicyEntry]) -> str:
    return ", ".join(f"`{one.name}`" for one in family)


def _traits(family: Iterable[PolicyEntry]) -> str:
    said: dict[str, list[str]] = {}
    for one in family:
        for trait, words in (
            ("chance", "depends on the seed"),
            ("needs_model", "needs a model"),
            ("has_bounds", "has bounds"),
            ("decides_itself", "decides itself"),
            ("tunes", "tunes"),
            ("anticipates", "anticipates"),
            ("plans_ahead", "plans ahead"),
        ):
            if getattr(one.traits, trait):
                said.setdefault(words, []).append(one.name)
    names = [one.name for one in family]
    return "; ".join(
        words if whose == names else f"{words} ({', '.join(f'`{name}`' for name in whose)})"
        for words, whose in said.items()
    )


def _settable(entry: PolicyEntry) -> str:
    return ", ".join(f"`{name}`" for name in entry.parameters)


def _default(entry: PolicyEntry, parameter: Parameter) -> str:
    if parameter.default is USUAL:
        return "worked out"
    published = entry.published.get(parameter.name)
    text = "-" if parameter.default is None else f"{parameter.default}"
    return text if published is None else f"{text}; as published {published}"
