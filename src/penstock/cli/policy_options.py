"""Policies as the command line names them: by name or `module:Class`, and `--set NAME=VALUE`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from penstock.domain.errors import InputError

if TYPE_CHECKING:
    from penstock.control.spec import Manager
    from penstock.policy.registry import Level, PolicyEntry

POLICY_HELP = (
    "{policies}; or module:Class of your own, found in this folder or on the Python path "
    "(docs/add-a-policy.md)."
)
PolicyOption = Annotated[str, typer.Option("--policy", help=f"Who decides for an operator. {POLICY_HELP}")]
PoliciesOption = Annotated[
    str, typer.Option("--policies", "--policy", help=f"Names separated by commas. {POLICY_HELP}")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A parameter of a policy, as in threshold=.6; repeatable. Where several policies have one of "
        "that name, say which: token-bucket.capacity=2. `penstock policies` lists them all.",
    ),
]


class Chosen(NamedTuple):
    """Policies of every level with their parameters, in the order they were named."""

    operators: "list[Manager]"
    applications: "list[Manager]"
    nodes: "list[Manager]"


def chosen(
    settings: Sequence[str],
    *,
    policies: Sequence[str],
    application_policies: Sequence[str] = (),
    node_policies: Sequence[str] = (),
    also_alone: bool = False,
) -> Chosen:
    """What was named, with what was set; every mistake is reported before anything runs.

    `also_alone` says that operators also run with no application policy above them.
    """
    from penstock.control.spec import Manager
    from penstock.policy.registry import Level

    below = [loaded(Level.OPERATOR, name) for name in policies]
    above = [loaded(Level.APPLICATION, name) for name in application_policies]
    nodes = [loaded(Level.NODE, name) for name in node_policies]
    values: dict[int, dict[str, bool | int | float | str | None]] = {}
    for text in settings:
        name, given, value = text.partition("=")
        if not given:
            raise InputError(f"--set '{text}': give NAME=VALUE, as in threshold=.6")
        owners, parameter = _owners(text, name.strip(), [*below, *above, *nodes])
        if not also_alone:
            _check_asked(text, owners, above)
        for one in owners:
            own = values.setdefault(id(one), {})
            if parameter in own:
                raise InputError(f"--set '{text}': {one.owner} has '{parameter}' set already; set it once")
            own[parameter] = one.parsed(parameter, value)

    def managers(entries: "Sequence[PolicyEntry]") -> list[Manager]:
        return [Manager(one.name, values.get(id(one), {})) for one in entries]

    return Chosen(managers(below), managers(above), managers(nodes))


def _check_asked(text: str, owners: "Sequence[PolicyEntry]", above: "Sequence[PolicyEntry]") -> None:
    """A parameter of a policy that nobody asks would be ignored in silence."""
    from penstock.policy.registry import Level

    if owners[0].level is Level.OPERATOR and above and all(one.traits.decides_itself for one in above):
        who = " and ".join(one.owner for one in above)
        raise InputError(
            f"--set '{text}': {who} decides for all operators, so {owners[0].owner} is never asked"
        )


def _owners(text: str, name: str, entries: "Sequence[PolicyEntry]") -> "tuple[list[PolicyEntry], str]":
    """Those a setting is meant for: all policies of one level that have such a parameter."""
    from penstock.policy.parameters import unknown_parameter

    if not entries:
        raise InputError(f"--set '{text}': no policy here takes parameters")
    owner, _, parameter = name.rpartition(".")
    meant = [one for one in entries if owner in ("", one.name)]
    if not meant:
        raise InputError(f"--set '{text}': '{owner}' is not one of {', '.join(one.name for one in entries)}")
    having = [one for one in meant if parameter in one.parameters]
    if not having:
        known = {known: one for entry in meant for known, one in entry.parameters.items()}
        who = " and ".join(dict.fromkeys(one.owner for one in meant))
        raise unknown_parameter(who, parameter, known)
    if len({one.level for one in having}) > 1:
        both = " and ".join(one.owner for one in having)
        raise InputError(
            f"--set '{text}': {both} both have it; say which, as in {having[0].name}.{parameter}=..."
        )
    return having, parameter


def loaded(level: "Level", name: str) -> "PolicyEntry":
    """The entry of a name given by a person; modules in this folder are found, too."""
    from penstock.policy.registry import load

    if ":" in name:
        look_here()
    return load(level, name)


def look_here() -> None:
    """Let modules in the current folder be imported, as `python -m` would."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)


def listed(option: str, text: str) -> list[str]:
    """Names separated by commas, each once."""
    found = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise InputError(f"{option} '{text}': give at least one name; commas separate several")
    return found
