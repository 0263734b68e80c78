"""The pipeline of Russo 2018 (sec. 4): a generated year under one manager, or one agent per operator."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np

from penstock.compiled import Floats, Ints, read_only
from penstock.data.synthetic import markov_levels
from penstock.domain.application import Application, Operator, pipeline
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective, Weights
from penstock.perf.cost import interval_cost
from penstock.perf.deployments import deployments
from penstock.perf.joint import joint_queues
from penstock.perf.queueing import m_d_1
from penstock.policy.application.centralised import (
    OFTEN,
    CentralisedLearner,
    CentralisedMdp,
    application_problem,
    joint_violation_costs,
)
from penstock.policy.operator.model_based import ModelLearner, Sweeps
from penstock.policy.operator.target_utilisation import TargetUtilisation
from penstock.policy.operator.value_iteration import ValuePlan
from penstock.policy.rl.backup import transitions
from penstock.policy.rl.problem import Problem, operator_problem
from penstock.runtimes.sim.episode import World
from penstock.runtimes.sim.graph import ManagedOperator, run_application
from penstock.runtimes.sim.joint import JointWorld, joint_trail, run_joint

SERVICE_RATES = (3.7, 3.3, 2.7, 3.3)  # tuples/s of one instance of operators 1 to 4
MAX_REPLICAS = 5
WEIGHTS = Weights(performance=0.4, resources=0.2, reconfiguration=0.4)
QUANTUM_PER_MIN = 20
YEAR = 525_600  # slots of a minute
DAY = 1440
MONTH = 30 * DAY
SEED = 1
LOWER_EDGE, MIDPOINT = 0.0, 0.5  # where in its level a rate is taken to be


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedYear:
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


def generated(trace_per_min: Floats, *, within: float, slots: int = YEAR, seed: int = SEED) -> GeneratedYear:
    """A workload that moves between levels as the trace did."""
    levels = np.floor(trace_per_min / QUANTUM_PER_MIN).astype(np.int64)
    known = transitions(levels, int(levels.max()) + 1)
    year = markov_levels(known, slots=slots, seed=seed, start=int(levels[0]))
    return GeneratedYear(levels=year, transitions=known, within=within)


@dataclass(frozen=True, slots=True, kw_only=True)
class YearResult:
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


def centralised_problem(operators: int, sla_s: float, workload: GeneratedYear) -> Problem:
    return application_problem(
        paper_application(operators), _objective(sla_s), levels=workload.count, max_rate=workload.max_rate
    )


def _violation_costs(operators: int, problem: Problem, workload: GeneratedYear) -> Floats:
    return joint_violation_costs(problem, joint_queues(paper_application(operators)), workload.level_rates)


def centralised_mdp(operators: int, sla_s: float, workload: GeneratedYear) -> CentralisedMdp:
    problem = centralised_problem(operators, sla_s, workload)
    return CentralisedMdp(
        application=paper_application(operators),
        objective=_objective(sla_s),
        problem=problem,
        transitions=workload.transitions,
        violation_costs=_violation_costs(operators, problem, workload),
    )


def centralised_learner(
    operators: int, sla_s: float, workload: GeneratedYear, *, told: bool, sweeps: Sweeps = OFTEN
) -> CentralisedLearner:
    """RL+ if it is `told` the response-time model, RL if not."""
    problem = centralised_problem(operators, sla_s, workload)
    return CentralisedLearner(
        application=paper_application(operators),
        objective=_objective(sla_s),
        problem=problem,
        violation_costs=_violation_costs(operators, problem, workload) if told else None,
        sweeps=sweeps,
    )


def run_centralised(policy: CentralisedMdp | CentralisedLearner, workload: GeneratedYear) -> YearResult:
    """A year under one manager, from one instance per operator."""
    memory: ValuePlan | ModelLearner = policy.initial()
    space = policy.problem.deployments
    world = JointWorld(space, joint_queues(policy.application), policy.problem.max_response_time_s)
    trail = joint_trail(workload.levels.size)
    run_joint(world, memory, workload.rates, 0, np.random.default_rng(SEED), trail)
    return _result(trail.violated, trail.reconfigured, trail.replicas, space.max_replicas)


def agent(target: float, workload: GeneratedYear, *, sweeps: Sweeps = OFTEN) -> TargetUtilisation:
    """The decentralised manager of one operator."""
    types = (NodeType(name="node", speedup=1.0, price=1.0),)
    space = deployments(types, MAX_REPLICAS)
    problem = operator_problem(
        space,
        levels=workload.count,
        max_rate=workload.max_rate,
        max_response_time_s=inf,
        weights=WEIGHTS,
    )
    return TargetUtilisation(
        node_types=types, deployments=space, problem=problem, target=target, sweeps=sweeps
    )


def run_decentralised(
    operators: int, limits_s: Sequence[float], target: float, workload: GeneratedYear
) -> dict[float, YearResult]:
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
            world=world, policy=policy, memory=policy.initial(), first_deployment=0, rng=rng
        )
    objective = _objective(limits_s[0])
    run = run_application(application, objective, managed, workload.rates, passes_all=True)
    scale = operators * MAX_REPLICAS
    return {
        sla_s: _result((run.response_time_s > sla_s).astype(np.int64), run.reconfigured, run.resources, scale)
        for sla_s in limits_s
    }


def _result(violated: Ints, reconfigured: Ints, instances: Floats, scale: int) -> YearResult:
    cost: Floats = interval_cost(WEIGHTS, violated, instances / scale, reconfigured)
    return YearResult(
        avg_cost=float(cost.mean()),
        violations=int(violated.sum()),
        reconfigurations=int(reconfigured.sum()),
        instances=float(instances.mean()),
        first_month_cost=float(cost[:MONTH].mean()),
        so_far=tuple((np.cumsum(cost) / np.arange(1, cost.size + 1))[DAY - 1 :: DAY].tolist()),
        slots=cost.size,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionTimes:
    """How long deciding takes for a number of operators, in seconds."""

    operators: int
    plan_s: float  # joint value iteration, once
    central_s: float  # one decision of the centralised learner
    agent_s: float  # one decision of one agent


def decision_times(trace_per_min: Floats, *, slots: int = 20_000, repeats: int = 3) -> list[DecisionTimes]:
    """Measured for one to four operators, the best of several runs."""
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
        sla_s = 0.65 * operators
        learner = centralised_learner(operators, sla_s, year, told=True)
        agents = partial(run_decentralised, operators, [sla_s], 0.7, year)
        return DecisionTimes(
            operators=operators,
            plan_s=seconds(centralised_mdp(operators, sla_s, year).initial),
            central_s=seconds(partial(run_centralised, learner, year)) / slots,
            agent_s=seconds(agents) / (operators * slots),
        )

    return [measured(operators) for operators in (1, 2, 3, 4)]
