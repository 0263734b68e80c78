"""`penstock bench`: speed and memory, as ratios within one run."""

from dataclasses import asdict

from penstock.cli import options, screen
from penstock.experiments.bench import STAGES, run_benchmarks


def bench(threads: options.ThreadsOption = None, json_output: options.JsonOption = False) -> int:
    """Measure the simulator against plain Python, one thread against several, planning time and memory.

    Exit status 1 when a figure misses what is wanted of it.
    """
    with screen.progress("starting", STAGES + 1) as bar:

        def stage(what: str) -> None:
            bar.advance()
            bar.say(what)

        figures = list(run_benchmarks(threads=options.default_threads(threads), stage=stage))
    missed = any(figure.ok is False for figure in figures)
    if json_output:
        screen.print_json({"figures": [{**asdict(figure), "ok": figure.ok} for figure in figures]})
        return int(missed)
    screen.print_table(
        ("benchmark", "measured", "wanted", "ok"),
        [
            (
                figure.name,
                f"{figure.value:,.3g} {figure.unit}",
                f">= {figure.at_least:g}"
                if figure.at_least is not None
                else f"<= {figure.at_most:g}"
                if figure.at_most is not None
                else "",
                {True: "yes", False: "NO", None: ""}[figure.ok],
            )
            for figure in figures
        ],
    )
    return int(missed)
