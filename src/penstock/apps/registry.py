"""Every application by name, from the entry in its folder; or the user's own, as `module:name`."""

import difflib
import pkgutil
from functools import cache
from importlib import import_module

from penstock.apps.entry import AppEntry
from penstock.domain.errors import InputError

ENTRY = "APPLICATION"  # what the module `entry` of an application's folder calls its entry

_loaded: dict[str, AppEntry] = {}


@cache
def applications() -> dict[str, AppEntry]:
    """Those that come with Penstock."""
    package = import_module("penstock.apps")
    found: dict[str, AppEntry] = {}
    for module in pkgutil.iter_modules(package.__path__):
        if module.ispkg:
            folder = f"{package.__name__}.{module.name}"
            if any(part.name == "entry" for part in pkgutil.iter_modules(import_module(folder).__path__)):
                one: AppEntry = getattr(import_module(f"{folder}.entry"), ENTRY)
                found[one.name] = one
    return found


def application_entry(name: str) -> AppEntry:
    """The entry of this name or alias; an error names the nearest one."""
    known = {**applications(), **_loaded}
    aliases = {alias: one for one in known.values() for alias in one.aliases}
    if name in known or name in aliases:
        return known.get(name) or aliases[name]
    near = difflib.get_close_matches(name, [*known, *aliases], n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"choose one of {', '.join(known)}"
    raise InputError(f"application '{name}': unknown; {hint}")


def load_application(name: str) -> AppEntry:
    """The same for a name that a person gave; `module:name` imports the module for its App or AppEntry."""
    if ":" not in name or name in _loaded:
        return application_entry(name)
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute, None)
    except Exception as problem:  # whatever a user's module raises
        what = " ".join(f"{type(problem).__name__}: {problem}".split())
        raise InputError(f"application '{name}': importing '{module}' failed: {what}") from problem
    if not isinstance(found, AppEntry):
        found = _entry_of(name, found)
    _loaded[name] = found
    return found


def _entry_of(name: str, found: object) -> AppEntry:
    from penstock.apps.own import own_entry
    from penstock.runtimes.spark.topology import App

    if isinstance(found, App):
        return own_entry(name, found)
    module, _, attribute = name.partition(":")
    raise InputError(f"application '{name}': module '{module}' has no App or AppEntry '{attribute}'")
