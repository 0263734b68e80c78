"""Help that lists what there is: names come from the registries, read when help is asked for."""

import string
from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand


class Teaching(TyperCommand):
    """A command whose help texts may say {policies} and the like."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            text = getattr(parameter, "help", None)
            if text:
                vars(parameter)["help"] = taught(text)
        super().format_help(ctx, formatter)


def taught(text: str) -> str:
    """The text with every name in braces replaced by what is known now."""
    wanted = {name for _, name, _, _ in string.Formatter().parse(text) if name}
    return text.format(**{name: _KNOWN[name]() for name in wanted})


def _policies() -> str:
    from penstock.policy.registry import Level, entries

    return ", ".join(entries(Level.OPERATOR))


def _application_policies() -> str:
    """Grouped by what they do, since that is what people choose by."""
    from penstock.policy.registry import Level, entries

    found = entries(Level.APPLICATION)
    asked = [name for name, one in found.items() if not (one.traits.decides_itself or one.traits.tunes)]
    tuning = [name for name, one in found.items() if one.traits.tunes]
    deciding = [name for name, one in found.items() if one.traits.decides_itself]
    return (
        f"{', '.join(asked)} (grant or refuse what each operator's --policy asks for); {', '.join(tuning)} "
        f"(also sets the --policy's bounds and weights); {', '.join(deciding)} (decide for all operators, "
        "without --policy)"
    )


def _node_policies() -> str:
    from penstock.policy.registry import Level, entries

    return ", ".join(entries(Level.NODE))


def _applications() -> str:
    from penstock.apps.registry import applications

    return ", ".join(applications())


def _families() -> str:
    from penstock.simulation.presets import FREQUENCIES, LINEAR, SPEEDUPS

    return ", ".join((*SPEEDUPS, FREQUENCIES, LINEAR))


def _workloads() -> str:
    from penstock.simulation.presets import WORKLOADS

    return ", ".join(WORKLOADS)


def _traces() -> str:
    from penstock.data.synthetic import RATES

    return ", ".join(RATES)


def _raw_kinds() -> str:
    from penstock.data.sources import KINDS

    return "; ".join(f"{name} ({kind.what})" for name, kind in KINDS.items())


def _events() -> str:
    from penstock.data.synthetic_events import EVENTS

    return ", ".join(EVENTS)


def _load_shapes() -> str:
    from penstock.apps.feeding.load import SHAPES

    return ", ".join(SHAPES)


def _objectives() -> str:
    """The objectives that applications were published with, where they are known."""
    from penstock.apps.registry import applications

    return "; ".join(
        f"{name} is made for --slo-ms {1000 * one.published_objective_s:g}"
        for name, one in applications().items()
        if one.published_objective_s is not None
    )


def _benchmarks() -> str:
    from penstock.cli.bench import BENCHMARKS

    return ", ".join(f"{name} ({one.what})" for name, one in BENCHMARKS.items())


def _reproductions() -> str:
    from penstock.papers.reproductions import REPRODUCTIONS

    return ", ".join(REPRODUCTIONS)


_KNOWN: dict[str, Callable[[], str]] = {
    "policies": _policies,
    "application_policies": _application_policies,
    "node_policies": _node_policies,
    "applications": _applications,
    "families": _families,
    "workloads": _workloads,
    "traces": _traces,
    "raw_kinds": _raw_kinds,
    "events": _events,
    "load_shapes": _load_shapes,
    "objectives": _objectives,
    "benchmarks": _benchmarks,
    "reproductions": _reproductions,
}
