"""`penstock reproduce`: the papers' tables, measured values beside printed ones."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import options, screen
from penstock.domain.errors import InputError
from penstock.files import check_can_write, write_whole

if TYPE_CHECKING:
    from penstock.papers.claims import Chart, Claim, Traces

_MET = {True: "yes", False: "NO", None: "-"}
_USUAL_PLACES = ("../shared/data", "data", ".")


def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="What to reproduce: {reproductions}; all but taas-deep and taas-figure* (long) if left out."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="Directory with rates/taxi.txt, taxi-last-month.txt, tweets.txt; or set PENSTOCK_DATA.",
        ),
    ] = None,
    threads: options.ThreadsOption = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run everything again, whatever an interrupted run has done.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="Page to write (HTML).")] = Path("out/reproduce.html"),
    json_output: options.JsonOption = False,
) -> None:
    """Run the experiments behind the papers' tables and show measured values beside the printed ones.

    All but edrp-tables and mpc need the real traces the tables were made with. Finished simulations of
    edf-table-1 and of Russo 2023 (taas-*, adaptive) are kept beside the page: the same command goes on
    from there after an interruption, unless the sources of Penstock have changed.
    """
    from penstock.papers.claims import Progress, Verdict, no_traces
    from penstock.papers.kept_runs import KeptRuns
    from penstock.papers.reproductions import REPRODUCTIONS
    from penstock.reports.claims import claims_page, summed_up

    usual = [name for name, one in REPRODUCTIONS.items() if not one.only_by_name]
    wanted = list(dict.fromkeys(names or usual))
    for name in wanted:
        if name not in REPRODUCTIONS:
            raise InputError(f"reproduce '{name}': unknown; choose one of {', '.join(REPRODUCTIONS)}")
    check_can_write(out)
    needed = any(REPRODUCTIONS[name].needs_traces for name in wanted)
    traces = _traces(data) if needed else no_traces()
    runs = out.with_suffix(".runs.jsonl")
    if fresh:
        runs.unlink(missing_ok=True)
    kept = KeptRuns(runs)
    claims: list[Claim] = []
    charts: list[Chart] = []
    began = time.perf_counter()
    for name in wanted:
        with screen.progress(name, None) as bar:
            progress = Progress(of=bar.of, advance=bar.advance, kept=kept)
            findings = REPRODUCTIONS[name].run(traces, options.default_threads(threads), progress)
            claims += findings.claims
            charts += findings.charts
    took = time.perf_counter() - began
    page = claims_page(
        "Reproduced: " + "; ".join(REPRODUCTIONS[name].title for name in wanted),
        f"{len(claims)} values, measured and printed side by side, in {took:.0f} s{_from_before(kept.used)}.",
        [setting for name in wanted for setting in REPRODUCTIONS[name].settings],
        claims,
        _costs(claims),
        charts,
    )
    write_whole(out, page)
    if json_output:
        screen.print_json({"claims": [claim.as_json() for claim in claims]})
        return
    screen.print_table(
        ("claim", "printed", "measured", "judged by", "verdict", "asked (ours)", "met"),
        [
            (c.id, c.printed or "-", c.shown, c.judged, c.verdict, str(c.asked or "-"), _MET[c.met])
            for c in claims
        ],
    )
    for claim in claims:
        if claim.verdict is Verdict.DOES_NOT:
            screen.out.print(
                f"differs: {claim.id}: printed {claim.printed}, measured {claim.shown}. {claim.note}"
            )
        elif claim.verdict is Verdict.HOLDS_WITHIN:
            screen.out.print(f"holds within: {claim.id}: {claim.within}")
        if claim.met is False:
            screen.out.print(
                f"missed: {claim.id}: asked of ourselves {claim.asked}, measured {claim.shown}. {claim.note}"
            )
    screen.out.print(f"{summed_up(claims)}; {took:.0f} s{_from_before(kept.used)}; page: {out}")


def _from_before(runs: int) -> str:
    return f", with {runs:,} runs of an earlier time" if runs else ""


def _costs(claims: "Sequence[Claim]") -> dict[str, list[tuple[str, float, float]]]:
    """Average costs by policy: name, printed, measured."""
    groups: dict[str, list[tuple[str, float, float]]] = {}
    for claim in claims:
        match claim.id.split("/"):
            case [table, setting, policy, "avg_cost"] if table.startswith("table") and claim.printed:
                point = (f"{table} {setting}", float(claim.printed), claim.measured)
                groups.setdefault(policy, []).append(point)
    return groups


def _traces(data: Path | None) -> "Traces":
    from penstock.data.traces import read_trace
    from penstock.papers.claims import Traces

    given = data or (Path(os.environ["PENSTOCK_DATA"]) if os.environ.get("PENSTOCK_DATA") else None)
    places = [given] if given else [Path(place) for place in _USUAL_PLACES]
    for place in places:
        rates = place / "rates"
        if _exists(rates / "taxi.txt"):
            return Traces(
                taxi=read_trace(rates / "taxi.txt").rates,
                taxi_last_month=read_trace(rates / "taxi-last-month.txt").rates,
                tweets=read_trace(rates / "tweets.txt").rates,
            )
    looked = ", ".join(str(place / "rates") for place in places)
    raise InputError(f"no taxi.txt in {looked}; give the directory of the published traces with --data")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long, a directory without access
        return False
