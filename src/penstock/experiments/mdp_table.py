"""Table 1 and Figure 2 of seed 003: one manager for a whole pipeline against one agent per operator."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np

from penstock.compiled import Floats, Ints, read_only
from penstock.data.synthetic import markov_levels
from penstock.domain.application import Application, Operator, pipeline
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective, Weights
from penstock.experiments.claims import Chart, Claim, Findings, Progress, Series, Traces, shown_like
from penstock.perf.deployments import deployments
from penstock.perf.joint import joint_queues
from penstock.perf.queueing import m_d_1
from penstock.policies.application.centralised import (
    CentralisedLearner,
    CentralisedMdp,
    application_problem,
    joint_violation_costs,
)
from penstock.policies.operator.model_based import ModelLearner, Sweeps
from penstock.policies.operator.target_utilisation import TargetUtilisation
from penstock.policies.operator.value_iteration import Plan
from penstock.policies.rl.backup import transitions
from penstock.policies.rl.problem import Problem, operator_problem
from penstock.runtimes.sim.episode import World
from penstock.runtimes.sim.joint import JointWorld, joint_trail, run_joint
from penstock.runtimes.sim.network import ManagedOperator, run_application

SERVICE_RATES = (3.7, 3.3, 2.7, 3.3)  # tuples/s of one instance of operators 1 to 4
MAX_REPLICAS = 5
WEIGHTS = Weights(performance=0.4, resources=0.2, reconfiguration=0.4)
QUANTUM_PER_MIN = 20
YEAR = 525_600  # slots of a minute
DAY = 1440
MONTH = 30 * DAY
SEED = 1
LOWER_EDGE, MIDPOINT = 0.0, 0.5  # where in its level a rate is taken to be
SLA_PER_OPERATOR_S = 0.65
SLA_AXIS_S = (1.0, 1.2, 1.4, 1.65, 1.8, 1.95, 2.1, 2.3, 2.6)
AGENTS = {"decentralised .6": 0.6, "decentralised .7": 0.7, "decentralised .8": 0.8}
# Alg. 1 backs up all states at every step; at most ten slots apart costs a tenth of the time.
OFTEN = Sweeps(longest_interval=10)

SETTINGS = (
    "One year of workload (525,600 slots of a minute), generated with seed 1 from the level transitions of "
    "the whole Taxi trace; levels of 20 tuples/min. A pipeline of M/D/1 operators with service rates 3.7, "
    "3.3, 2.7 and 3.3 tuples/s, up to 5 instances each, every operator receiving the source's rate; weights "
    ".4 violations, .4 reconfigurations, .2 resources; gamma .99, alpha .1. Runs start with one each.",
    "The printed T_SLA of 650 ms cannot be met by three operators: their service times alone sum to 943 ms. "
    "Nor does the paper say which rate a level stands for. Three readings are shown: T_SLA 1.65 s with rates "
    "at the lower edge of their level (an independent computation exists for it), and 650 ms per operator, "
    "1.95 s for three, with rates at the lower edge and at the midpoint. The last was found by looking: of "
    "lower edge, midpoint and upper edge and limits from 1.2 to 2.5 s it is the one nearest to Table 1, so "
    "its nearness to the printed costs is a fit, not a test. What the agents can do follows from T_SLA: all "
    "operators at utilisation U take 943 ms * (1 + U / (2 (1 - U))), 1.65 s at .6, 2.04 s at .7.",
    "A violation is that of the deployment in force in the slot, so a decision is judged at the next slot's "
    "rate. A slot in which any operator changes is one reconfiguration.",
    "Learners back up all states at every slot at first and at most ten slots apart later; Alg. 1 does it at "
    "every slot. The learned violation cost belongs to the deployment and level it was observed at, and its "
    "expectation over the next level is taken with the learned transitions; eq. (6) indexes it by state and "
    "action.",
)

PRINTED: Mapping[str, tuple[str, str, str, str]] = {  # average cost, violations, reconfigurations, instances
    "centralised MDP": ("0.163", "8903", "13882", "10.95"),
    "centralised RL+": ("0.164", "9505", "13684", "10.94"),
    "centralised RL": ("0.167", "15681", "14579", "10.79"),
    "decentralised .6": ("0.178", "3639", "30104", "11.46"),
    "decentralised .7": ("0.173", "17111", "30404", "10.30"),
    "decentralised .8": ("0.205", "79670", "29681", "9.15"),
}
_COLUMNS = ("avg_cost", "violations", "reconfigurations", "instances")


def sla_of(operators: int) -> float:
    """650 ms per operator, to the hundredth of a second."""
    return round(SLA_PER_OPERATOR_S * operators, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A generated year: the level of every slot, and how levels move."""

    levels: Ints
    transitions: Floats
    within: float  # where in its level a rate stands, 0 to 1

    @property
    def count(self) -> int:
        return len(self.transitions)

    @property
    def max_rate(self) -> float:
        return self.count * QUANTUM_PER_MIN / 60

    @property
    def level_rates(self) -> Floats:
        """Tuples/s of every level."""
        rates: Floats = (np.arange(self.count) + self.within) * QUANTUM_PER_MIN / 60
        return rates

    @property
    def rates(self) -> Floats:
        return read_only(self.level_rates[self.levels])


def generated(trace_per_min: Floats, *, within: float, slots: int = YEAR, seed: int = SEED) -> Workload:
    """A workload that moves between levels as the trace did."""
    levels = np.floor(trace_per_min / QUANTUM_PER_MIN).astype(np.int64)
    known = transitions(levels, int(levels.max()) + 1)
    year = markov_levels(known, slots=slots, seed=seed, start=int(levels[0]))
    return Workload(levels=year, transitions=known, within=within)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a year cost."""

    avg_cost: float
    violations: int
    reconfigurations: int
    instances: float  # mean, of all operators
    first_month_cost: float  # mean
    so_far: tuple[float, ...]  # mean cost since the start, at the end of every day
    slots: int


def paper_application(operators: int) -> Application:
    return pipeline(
        f"pipeline-{operators}",
        *(
            Operator(
                name=f"op{index + 1}", service_time_s=1 / rate, service_scv=0.0, max_replicas=MAX_REPLICAS
            )
            for index, rate in enumerate(SERVICE_RATES[:operators])
        ),
    )


def _objective(sla_s: float) -> Objective:
    return Objective(response_time_s=sla_s, weights=WEIGHTS)


def centralised_problem(operators: int, sla_s: float, workload: Workload) -> Problem:
    return application_problem(
        paper_application(operators), _objective(sla_s), levels=workload.count, max_rate=workload.max_rate
    )


def _violation_costs(operators: int, problem: Problem, workload: Workload) -> Floats:
    return joint_violation_costs(problem, joint_queues(paper_application(operators)), workload.level_rates)


def centralised_mdp(operators: int, sla_s: float, workload: Workload) -> CentralisedMdp:
    problem = centralised_problem(operators, sla_s, workload)
    return CentralisedMdp(
        application=paper_application(operators),
        objective=_objective(sla_s),
        problem=problem,
        transitions=workload.transitions,
        violation_costs=_violation_costs(operators, problem, workload),
    )


def centralised_learner(
    operators: int, sla_s: float, workload: Workload, *, told: bool, sweeps: Sweeps = OFTEN
) -> CentralisedLearner:
    """RL+ if it is told the response-time model, RL if not."""
    problem = centralised_problem(operators, sla_s, workload)
    return CentralisedLearner(
        application=paper_application(operators),
        objective=_objective(sla_s),
        problem=problem,
        violation_costs=_violation_costs(operators, problem, workload) if told else None,
        sweeps=sweeps,
    )


def run_centralised(policy: CentralisedMdp | CentralisedLearner, workload: Workload) -> Result:
    """A year under one manager, from one instance per operator."""
    memory: Plan | ModelLearner = policy.initial()
    space = policy.problem.deployments
    world = JointWorld(space, joint_queues(policy.application), policy.problem.max_response_time_s)
    trail = joint_trail(workload.levels.size)
    run_joint(world, memory, workload.rates, 0, np.random.default_rng(SEED), trail)
    return _result(trail.violated, trail.reconfigured, trail.replicas, space.max_replicas)


def agent(target: float, workload: Workload, *, sweeps: Sweeps = OFTEN) -> TargetUtilisation:
    """The decentralised manager of one operator."""
    types = (NodeType(name="node", speedup=1.0, price=1.0),)
    space = deployments(types, MAX_REPLICAS)
    problem = operator_problem(
        space,
        levels=workload.count,
        max_rate=workload.max_rate,
        max_response_time_s=inf,
        weights=WEIGHTS,
        max_utilisation=target,
    )
    return TargetUtilisation(node_types=types, deployments=space, problem=problem, sweeps=sweeps)


def run_decentralised(
    operators: int, limits_s: Sequence[float], target: float, workload: Workload
) -> dict[float, Result]:
    """A year under one agent per operator; none knows T_SLA, so one run answers for many limits."""
    application = paper_application(operators)
    managed: dict[str, ManagedOperator] = {}
    for operator, rng in zip(
        application.operators, np.random.default_rng(SEED).spawn(operators), strict=True
    ):
        policy = agent(target, workload)
        world = World(
            deployments=policy.deployments,
            queue=m_d_1(operator.service_time_s),
            max_response_time_s=inf,
            performance=WEIGHTS.performance,
            resources=WEIGHTS.resources,
            reconfiguration=WEIGHTS.reconfiguration,
            cost_scale=float(MAX_REPLICAS),
            charge_before=False,
        )
        managed[operator.name] = ManagedOperator(
            world=world, memory=policy.initial(), first_deployment=0, rng=rng
        )
    objective = _objective(limits_s[0])
    run = run_application(application, objective, managed, workload.rates, passes_all=True)
    scale = operators * MAX_REPLICAS
    return {
        sla_s: _result((run.response_time_s > sla_s).astype(np.int64), run.reconfigured, run.resources, scale)
        for sla_s in limits_s
    }


def _result(violated: Ints, reconfigured: Ints, instances: Floats, scale: int) -> Result:
    cost = (
        WEIGHTS.performance * violated
        + WEIGHTS.reconfiguration * reconfigured
        + WEIGHTS.resources * instances / scale
    )
    return Result(
        avg_cost=float(cost.mean()),
        violations=int(violated.sum()),
        reconfigurations=int(reconfigured.sum()),
        instances=float(instances.mean()),
        first_month_cost=float(cost[:MONTH].mean()),
        so_far=tuple((np.cumsum(cost) / np.arange(1, cost.size + 1))[DAY - 1 :: DAY].tolist()),
        slots=cost.size,
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """How what the paper leaves open is read."""

    name: str
    sla_s: float  # of three operators
    within: float


CHECKED = Reading("1.65 s, lower edge", 1.65, LOWER_EDGE)
LOWER = Reading("1.95 s, lower edge", sla_of(3), LOWER_EDGE)
MIDDLE = Reading("1.95 s, midpoint", sla_of(3), MIDPOINT)
READINGS = (CHECKED, LOWER, MIDDLE)

Key = tuple[str, int, float, float]  # policy, operators, T_SLA, where in its level a rate stands
Results = Mapping[Key, Result]


def _jobs(traces: Traces) -> list[Callable[[], dict[Key, Result]]]:
    """Everything to simulate, the longest first."""
    years = {within: generated(traces.taxi, within=within) for within in (LOWER_EDGE, MIDPOINT)}
    learners = [
        partial(_learned, policy, reading, years[reading.within])
        for reading in READINGS
        for policy in ("centralised RL", "centralised RL+")
    ]
    planners = [
        partial(_planned, operators, sla_s, year)
        for year in years.values()
        for operators in (4, 3, 2, 1)
        for sla_s in _limits(operators)
    ]
    agents = [
        partial(_managed, policy, operators, year)
        for year in years.values()
        for operators in (4, 3, 2, 1)
        for policy in (AGENTS if operators == 3 else ["decentralised .7"])
    ]
    return [*learners, *planners, *agents]


def _limits(operators: int) -> tuple[float, ...]:
    return SLA_AXIS_S if operators == 3 else (sla_of(operators),)


def _learned(policy: str, reading: Reading, workload: Workload) -> dict[Key, Result]:
    learner = centralised_learner(3, reading.sla_s, workload, told=policy.endswith("+"))
    return {(policy, 3, reading.sla_s, reading.within): run_centralised(learner, workload)}


def _planned(operators: int, sla_s: float, workload: Workload) -> dict[Key, Result]:
    result = run_centralised(centralised_mdp(operators, sla_s, workload), workload)
    return {("centralised MDP", operators, sla_s, workload.within): result}


def _managed(policy: str, operators: int, workload: Workload) -> dict[Key, Result]:
    by_limit = run_decentralised(operators, _limits(operators), AGENTS[policy], workload)
    return {(policy, operators, sla_s, workload.within): result for sla_s, result in by_limit.items()}


def reproduce(traces: Traces, threads: int, progress: Progress) -> Findings:
    """Run everything and compare."""
    jobs = _jobs(traces)
    progress.of(len(jobs) + 1)

    def one(job: Callable[[], dict[Key, Result]]) -> dict[Key, Result]:
        results = job()
        progress.advance()
        return results

    with ThreadPoolExecutor(max_workers=max(threads, 1)) as pool:
        results = {key: result for part in pool.map(one, jobs) for key, result in part.items()}
    tables = {
        reading: {policy: results[policy, 3, reading.sla_s, reading.within] for policy in PRINTED}
        for reading in READINGS
    }
    times = decision_times(traces.taxi)  # with nothing of ours beside it
    progress.advance()
    claims = [
        *_checked(tables[CHECKED]["centralised MDP"]),
        *(claim for reading, table in tables.items() for claim in _effects(reading, table)),
        *_growing_gap(results),
        *_scaling(times),
        *(claim for reading, table in tables.items() for claim in _table(reading, table)),
        *_axis(results),
    ]
    return Findings(claims=claims, charts=_charts(tables, results, times))


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTimes:
    """What deciding takes for so many operators, in seconds."""

    operators: int
    plan_s: float  # joint value iteration, once
    central_s: float  # one decision of the centralised learner
    agent_s: float  # one decision of one agent


def decision_times(trace_per_min: Floats, *, slots: int = 20_000, repeats: int = 3) -> list[DecisionTimes]:
    """Measured for one to four operators, the best of some repeats."""
    year = generated(trace_per_min, within=MIDPOINT, slots=slots)

    def seconds(work: Callable[[], object]) -> float:
        work()  # compiled
        taken = []
        for _ in range(repeats):
            began = time.perf_counter()
            work()
            taken.append(time.perf_counter() - began)
        return min(taken)

    def measured(operators: int) -> DecisionTimes:
        sla_s = sla_of(operators)
        learner = centralised_learner(operators, sla_s, year, told=True)
        agents = partial(run_decentralised, operators, [sla_s], 0.7, year)
        return DecisionTimes(
            operators=operators,
            plan_s=seconds(centralised_mdp(operators, sla_s, year).initial),
            central_s=seconds(partial(run_centralised, learner, year)) / slots,
            agent_s=seconds(agents) / (operators * slots),
        )

    return [measured(operators) for operators in (1, 2, 3, 4)]


def _scaling(times: Sequence[DecisionTimes]) -> list[Claim]:
    """Seed 003: agents have no scalability issues, a centralised problem gets easily impractical."""
    one, four = times[0], times[-1]
    return [
        _below(
            "decisions/4 operators of 5 replicas/seconds of joint value iteration",
            "10",
            four.plan_s,
            "asked for by the issue; the paper gives no time",
        ),
        _below(
            "decisions/an agent's decision/4 operators over 1",
            "1.5",
            four.agent_s / one.agent_s,
            f"{1e6 * four.agent_s:.2f} us; the centralised learner's grows from "
            f"{1e6 * one.central_s:.1f} to {1e6 * four.central_s:.0f} us",
        ),
    ]


def _charts(
    tables: Mapping[Reading, Mapping[str, Result]], results: Results, times: Sequence[DecisionTimes]
) -> list[Chart]:
    days = list(range(1, YEAR // DAY + 1))
    counts = (1, 2, 3, 4)
    where = {MIDPOINT: "midpoint", LOWER_EDGE: "lower edge"}

    def costs(policy: str, within: float) -> list[float]:
        return [results[policy, count, sla_of(count), within].avg_cost for count in counts]

    return [
        Chart(
            title="Figure 2a: average cost during one simulated year",
            note=f"Three operators, {MIDDLE.name}. Mean cost of all slots since the start, at the end of "
            "every day; + is told the response-time model.",
            x_title="days since start",
            y_title="average cost so far",
            series=[
                Series(name=policy, x=days, y=tables[MIDDLE][policy].so_far)
                for policy in PRINTED
                if policy != "decentralised .8"
            ],
        ),
        Chart(
            title="Figure 2b: average cost by number of operators",
            note="T_SLA 650 ms per operator; rates at the midpoint and at the lower edge of their level.",
            x_title="operators",
            y_title="average cost over a year",
            series=[
                Series(name=f"{policy}, {name}", x=counts, y=costs(policy, within), group=group)
                for group, policy in enumerate(("centralised MDP", "decentralised .7"))
                for within, name in where.items()
            ],
            whole_x=True,
        ),
        Chart(
            title="Where on the axis of T_SLA the printed cost lies",
            note="Three operators. At the printed T_SLA of 0.65 s every slot violates.",
            x_title="T_SLA, seconds",
            y_title="average cost of the centralised MDP",
            series=[
                Series(
                    name=name,
                    x=SLA_AXIS_S,
                    y=[results["centralised MDP", 3, sla_s, within].avg_cost for sla_s in SLA_AXIS_S],
                )
                for within, name in where.items()
            ],
            marked_y=(0.163, "printed: .163"),
        ),
        Chart(
            title="What a decision takes by number of operators",
            note="Measured here, the best of three runs of 20,000 slots: one decision of one agent, one of "
            "the centralised learner, which backs up joint states now and then, and joint value iteration, "
            "done once. Five replicas per operator.",
            x_title="operators",
            y_title="microseconds",
            series=[
                Series(name="an agent's decision", x=counts, y=[1e6 * t.agent_s for t in times]),
                Series(name="centralised RL+, a decision", x=counts, y=[1e6 * t.central_s for t in times]),
                Series(name="joint value iteration, once", x=counts, y=[1e6 * t.plan_s for t in times]),
            ],
            log_y=True,
            whole_x=True,
        ),
    ]


def _checked(result: Result) -> list[Claim]:
    """An independent computation of the same, from the issue that asked for it."""
    measured = (
        ("avg_cost", "0.1808", result.avg_cost),
        ("violations_pct", "4.50", 100 * result.violations / result.slots),
        ("reconfigurations_pct", "2.70", 100 * result.reconfigurations / result.slots),
        ("instances", "11.40", result.instances),
    )
    return [
        Claim(
            id=f"independent/{CHECKED.name}/centralised MDP/{column}",
            source="an independent computation",
            printed=printed,
            measured=value,
            shown=shown_like(printed, value),
            tolerance=0.02,
        )
        for column, printed, value in measured
    ]


def _table(reading: Reading, table: Mapping[str, Result]) -> list[Claim]:
    """Table 1 beside ours: nothing is claimed, T_SLA being another than printed."""
    return [
        Claim(
            id=f"table-1/{reading.name}/{policy}/{column}",
            source="seed 003, Table 1",
            printed=printed,
            measured=(value := float(getattr(table[policy], column))),
            shown=shown_like(printed, value),
            tolerance=None,
        )
        for policy, row in PRINTED.items()
        for column, printed in zip(_COLUMNS, row, strict=True)
    ]


def _below(name: str, limit: str, value: float, note: str) -> Claim:
    return Claim(
        id=name,
        source="seed 003, sec. 4",
        printed=f"<{limit}",
        measured=value,
        shown=f"{value:.3f}",
        tolerance=0.0,
        note=note,
    )


def _effects(reading: Reading, table: Mapping[str, Result]) -> list[Claim]:
    """What the paper concludes from Table 1 and Fig. 2a, in one reading of its setting."""
    optimum, rl, plus = (table[f"centralised {name}"] for name in ("MDP", "RL", "RL+"))
    agents = {policy: table[policy] for policy in AGENTS}
    best = agents["decentralised .7"]
    group = f"effects/{reading.name}"

    def cost_ratio(policy: str, other: str, limit: str) -> Claim:
        ratio = table[policy].avg_cost / table[other].avg_cost
        printed = float(PRINTED[policy][0]) / float(PRINTED[other][0])
        note = f"Table 1: {printed:.3f}"
        if reading is CHECKED and policy in AGENTS:
            note += (
                "; with all operators at .7 a tuple takes 2.04 s, at .6 1.65 s: the limit decides the target"
            )
        return _below(f"{group}/{policy}/cost over {other}'s", limit, ratio, note)

    def reconfigurations(policy: str) -> Claim:
        printed = f"{int(PRINTED[policy][2]) / int(PRINTED['centralised MDP'][2]):.2f}"
        ratio = table[policy].reconfigurations / optimum.reconfigurations
        return Claim(
            id=f"{group}/{policy}/reconfigurations over the MDP's",
            source="seed 003, Table 1",
            printed=printed,
            measured=ratio,
            shown=shown_like(printed, ratio),
            tolerance=0.15,
            note="about twice; at .7 it depends on which rates of the levels fall just above .7 k mu",
        )

    return [
        cost_ratio("centralised RL+", "centralised MDP", "1.02"),
        cost_ratio("centralised RL", "centralised MDP", "1.05"),
        cost_ratio("decentralised .7", "centralised MDP", "1.12"),
        cost_ratio("decentralised .7", "decentralised .6", "1"),
        cost_ratio("decentralised .7", "decentralised .8", "1"),
        _below(
            f"{group}/decentralised .7/violations over .8's",
            "0.5",
            best.violations / agents["decentralised .8"].violations,
            "Table 1: 0.215",
        ),
        *(reconfigurations(policy) for policy in AGENTS),
        _below(
            f"{group}/centralised RL+/first 30 days' cost over RL's",
            "1",
            plus.first_month_cost / rl.first_month_cost,
            f"Fig. 2a: slower without the model; {plus.first_month_cost:.3f} against "
            f"{rl.first_month_cost:.3f}, MDP {optimum.first_month_cost:.3f}, "
            f"decentralised .7 {best.first_month_cost:.3f}",
        ),
    ]


def _growing_gap(results: Results) -> list[Claim]:
    """Fig. 2b: how much more the decentralised agents cost, by the number of operators."""
    claims = []
    for within, where in ((MIDPOINT, "midpoint"), (LOWER_EDGE, "lower edge")):
        gap = {
            operators: results["decentralised .7", operators, sla_of(operators), within].avg_cost
            / results["centralised MDP", operators, sla_of(operators), within].avg_cost
            - 1
            for operators in (1, 2, 3, 4)
        }
        gaps = ", ".join(f"{operators}: {100 * value:.1f} %" for operators, value in gap.items())
        note = f"cost of decentralised .7 over the MDP's, T_SLA 650 ms per operator: {gaps}"
        claims += [
            _below(
                f"figure-2b/{where}/{fewer} to {more} operators/gap over the next",
                "1",
                gap[fewer] / gap[more],
                note,
            )
            for fewer, more in ((1, 2), (2, 3), (3, 4), (1, 4))
        ]
    return claims


def _axis(results: Results) -> list[Claim]:
    """What other limits give, and where the printed cost of the MDP lies."""
    claims = []
    for within, where in ((MIDPOINT, "midpoint"), (LOWER_EDGE, "lower edge")):
        costs = [results["centralised MDP", 3, sla_s, within].avg_cost for sla_s in SLA_AXIS_S]
        # Costs fall as the limit grows; interpolation wants them rising.
        crossing = float(np.interp(-0.163, [-cost for cost in costs], SLA_AXIS_S))
        claims.append(
            Claim(
                id=f"axis/{where}/T_SLA where the MDP costs .163/seconds",
                source="seed 003, sec. 4",
                printed="0.65",
                measured=crossing,
                shown=f"{crossing:.2f}",
                tolerance=None,
                note="at the printed 650 ms every slot violates: .4 + .2 * 3/15 = .440",
            )
        )
        for sla_s, cost in zip(SLA_AXIS_S, costs, strict=True):
            agents = {target: results[policy, 3, sla_s, within].avg_cost for policy, target in AGENTS.items()}
            listed = ", ".join(f"{agent:.3f} at {target:g}" for target, agent in agents.items())
            claims.append(
                Claim(
                    id=f"axis/{where}/T_SLA {sla_s:g} s/centralised MDP cost",
                    source="seed 003, Table 1",
                    printed="0.163",
                    measured=cost,
                    shown=f"{cost:.3f}",
                    tolerance=None,
                    note=f"decentralised {listed}: best at {min(agents, key=agents.__getitem__):g}",
                )
            )
    return claims
