"""`penstock plan`: how many replicas of every operator, and on which hosts."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import options, screen
from penstock.domain.errors import InputError
from penstock.files import check_can_write, write_whole

if TYPE_CHECKING:
    from penstock.planning.problem import Problem
    from penstock.planning.solve import Answer


def plan(
    app_file: Annotated[
        Path,
        typer.Option("--app", help="The application: operators, streams, bounds and weights (TOML)."),
    ],
    network_file: Annotated[
        Path, typer.Option("--network", help="Hosts and links: capacity, speed, price, delay (TOML).")
    ],
    current_file: Annotated[
        Path | None,
        typer.Option("--current", help="What runs now (TOML); without it, nothing is interrupted."),
    ] = None,
    spark_times: Annotated[
        Path | None,
        typer.Option(
            "--spark-times",
            help="Where a change restarts everything: what `penstock bench reconfigurations --json` printed.",
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option("--objective", help="Weights of response time, cost and downtime, as .3,.3,.4."),
    ] = None,
    restricted: Annotated[
        bool,
        typer.Option("--restricted", help="Only plans one step from the current one, operator by operator."),
    ] = False,
    lp_file: Annotated[
        Path | None,
        typer.Option("--write-lp", help="Also write the paper's integer programme, for other solvers."),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--time-limit", min=0, help="Seconds after which the best plan so far is given.")
    ] = 60.0,
    picture: Annotated[
        Path | None, typer.Option("--out", help="A page with the plan on the network, as a picture.")
    ] = None,
    json_output: options.JsonOption = False,
) -> None:
    """Plan replicas and where they run, exactly: the lowest weighted sum of response time, cost and downtime.

    Exit status 2 where no plan keeps all bounds, with the bound that stands in the way; 1 where none was
    found in time.
    """
    from penstock.plan_file import read_problem, with_times_of
    from penstock.planning.milp import as_lp, as_milp, check_size
    from penstock.planning.solve import Infeasible, TimedOut, all_choices, solve

    for path in (lp_file, picture):
        if path is not None:
            check_can_write(path)
    problem = read_problem(app_file, network_file, current_file, weights=_weights(objective))
    if spark_times is not None:
        problem = with_times_of(problem, spark_times)
    if lp_file is not None:
        choices = all_choices(problem, restricted=restricted)
        check_size(problem, choices)
        write_whole(lp_file, as_lp(as_milp(problem, choices)))
    began_s = time.monotonic()
    with screen.busy("planning (the first plan of all compiles the search)"):
        answer = solve(problem, restricted=restricted, enough=lambda: time.monotonic() - began_s > seconds)
    took_s = time.monotonic() - began_s
    if isinstance(answer, Infeasible):
        raise InputError(f"no plan: {answer.why}")
    if picture is not None and not isinstance(answer, TimedOut):
        from penstock.reports.placement import write_page

        write_page(problem, answer, picture)
    if json_output:
        screen.print_json(_as_json(answer, took_s))
    elif not isinstance(answer, TimedOut):
        _print(problem, answer, took_s, restricted=restricted)
    if isinstance(answer, TimedOut):
        screen.complain(f"no plan found in {took_s:.1f} s; none is below {answer.bound:.6g}")
        raise typer.Exit(1)


def _weights(given: str | None) -> tuple[float, float, float] | None:
    if given is None:
        return None
    try:
        response_time, cost, downtime = (float(part) for part in given.split(","))
    except ValueError as problem:
        raise InputError(f"--objective {given}: give three numbers, as .3,.3,.4") from problem
    weights = (response_time, cost, downtime)
    if not (all(0 <= weight <= 1 for weight in weights) and abs(sum(weights) - 1) < 1e-9):
        raise InputError(f"--objective {given}: the weights must not be negative and must sum to 1")
    return weights


def _print(problem: "Problem", answer: "Answer", took_s: float, *, restricted: bool) -> None:
    from penstock.planning.solve import Incumbent, Optimal

    assert isinstance(answer, Optimal | Incumbent)
    now = problem.current or {}
    rows = []
    for operator in problem.operators:
        hosts = answer.plan[operator.name]
        before = problem.in_order(now[operator.name]) if operator.name in now else None
        rows.append((operator.name, str(len(hosts)), ", ".join(hosts), _change(before, hosts)))
    screen.print_table(("operator", "replicas", "on", "change"), rows, words=True)
    goal, comes_to = problem.goal, answer.comes_to
    screen.print_table(
        ("", "planned", "bound", "weight"),
        (
            (
                "response time",
                f"{1000 * comes_to.response_time_s:.1f} ms",
                f"{1000 * goal.max_response_time_s:g} ms",
                f"{goal.response_time:g}",
            ),
            ("cost", f"{comes_to.cost:.3f}", f"{goal.max_cost:g}", f"{goal.cost:g}"),
            ("downtime", f"{comes_to.downtime_s:.3f} s", f"{goal.max_downtime_s:g} s", f"{goal.downtime:g}"),
        ),
    )
    if isinstance(answer, Optimal):
        proof = "no plan one step from what runs is better" if restricted else "no plan is better"
    else:
        proof = f"none is below {answer.bound:.6f} (gap {100 * answer.gap:.2g} %), and there was no more time"
    screen.out.print(f"objective {answer.value:.6f}: {proof}; {took_s:.2f} s")


def _change(before: tuple[str, ...] | None, after: tuple[str, ...]) -> str:
    if before is None:
        return "new"
    if before == after:
        return "-"
    if len(after) > len(before):
        return f"scaled out from {', '.join(before)}"
    if len(after) < len(before):
        return f"scaled in from {', '.join(before)}"
    return f"migrated from {', '.join(before)}"


def _as_json(answer: "Answer", took_s: float) -> dict[str, Any]:
    from penstock.planning.solve import Incumbent, Optimal, TimedOut

    told: dict[str, Any] = {"status": type(answer).__name__.lower(), "seconds": took_s}
    if isinstance(answer, Optimal | Incumbent):
        told |= {
            "objective": answer.value,
            "bound": answer.bound if isinstance(answer, Incumbent) else answer.value,
            "gap": answer.gap if isinstance(answer, Incumbent) else 0.0,
            **answer.comes_to._asdict(),
            "plan": {name: list(hosts) for name, hosts in answer.plan.items()},
        }
    elif isinstance(answer, TimedOut):
        told["bound"] = answer.bound
    return told
