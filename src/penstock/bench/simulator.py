"""Speed and memory, as ratios measured in one run: on a busy machine the baseline is slowed down too."""

import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.bench import plain_python as plain
from penstock.bench.applications import application_figures
from penstock.bench.figure import Figure
from penstock.bench.startup import startup_figures
from penstock.compiled import Floats
from penstock.control.spec import Manager
from penstock.data.synthetic import day_and_week
from penstock.papers import mdp_pipeline
from penstock.policy.operator.value_iteration import ValueIteration
from penstock.simulation.one_operator import operator_of
from penstock.simulation.play import run, run_all
from penstock.simulation.spec import OneOperator
from penstock.simulation.truth import TRAINING_SLOTS

SLOTS = 400_001
_PLAIN_SLOTS = 20_000
_REPEATS = 3
_JOINT_SLOTS = 20_000


STAGES = 7


def run_benchmarks(*, threads: int, stage: Callable[[str], None]) -> Iterator[Figure]:
    """Measure everything, one figure after another; `stage` is called with what comes next."""
    stage("start-up, against an empty Python program")
    yield from startup_figures()
    rates = day_and_week(slots=SLOTS, seed=1).rates
    stage("one thread, against plain Python")
    yield from _speed(rates)
    stage("ten seeds on one and on several threads")
    yield _parallel(rates, threads)
    stage("value iteration")
    yield from _planning(rates)
    stage("one manager for all operators, or one for each")
    yield from joint_figures(rates)
    stage("applications under managers")
    yield from application_figures(rates)
    stage("ten node types, twenty replicas")
    yield from _large()


def _speed(rates: Floats) -> Iterator[Figure]:
    for policy, least in (("threshold-c", 12e6), ("ql", 5e6), ("ql-pds", 8e6), ("ql-pds-plus", 8e6)):
        spec = OneOperator(operator_policy=Manager(policy), as_published=True)
        compiled_rate = max(run(spec, rates).slots_per_s for _ in range(_REPEATS))
        plain_rate = max(_plain_slots_per_s(spec, rates[:_PLAIN_SLOTS]) for _ in range(_REPEATS))
        yield Figure(
            name=f"{policy}, A:3, 10 replicas",
            value=compiled_rate / 1e6,
            unit="M slots/s",
            at_least=least / 1e6,
        )
        yield Figure(name=f"{policy} in plain Python", value=plain_rate / 1e3, unit="k slots/s")
        yield Figure(
            name=f"{policy}, compiled over plain", value=compiled_rate / plain_rate, unit="x", at_least=100
        )


def _plain_slots_per_s(spec: OneOperator, rates: Floats) -> float:
    setting, policy, counts = plain_twin(spec, rates)
    slots = [float(rate) for rate in rates]
    began = time.perf_counter()
    plain.simulate(setting, policy, slots, counts)
    return len(slots) / (time.perf_counter() - began)


def plain_twin(spec: OneOperator, rates: Floats) -> tuple[plain.Setting, plain.Policy, plain.Counts]:
    """The plain-Python setting, policy and first deployment of a published specification."""
    _, policy_rng = np.random.default_rng(spec.seed).spawn(2)
    op = operator_of(spec, rates, rates, spec.seed)
    setting = plain.Setting(
        speedups=tuple(t.speedup for t in op.node_types),
        prices=tuple(t.price for t in op.node_types),
        max_replicas=spec.max_replicas,
        service_time_s=1.0 / spec.service_rate,
        service_scv=spec.service_scv,
        slo_s=spec.slo_s,
        performance=spec.weights.performance,
        resources=spec.weights.resources,
        reconfiguration=spec.weights.reconfiguration,
        cost_scale=op.cost_scale,
        levels=spec.levels,
        max_rate=spec.max_rate,
        gamma=0.99,
    )
    first = tuple(int(index == 0) for index in range(len(op.node_types)))
    if spec.operator_policy.name == "ql":
        return setting, plain.QLearning(setting, policy_rng), first
    if spec.operator_policy.name == "ql-pds":
        return setting, plain.PdsLearning(setting, as_published=spec.updates_as_published), first
    if spec.operator_policy.name == "ql-pds-plus":
        believed = op.believed
        guess = replace(
            setting,
            speedups=tuple(float(speed) for speed in believed.deployments.speedup),
            service_time_s=believed.queue.service_time_s,
            service_scv=believed.queue.service_scv,
        )
        midpoint = setting.max_rate / setting.levels

        def expects_violation(counts: plain.Counts, level: int) -> bool:
            return guess.response_time(counts, (level + 0.5) * midpoint) > setting.slo_s

        learner = plain.PdsLearning(
            setting, as_published=spec.updates_as_published, expects_violation=expects_violation
        )
        return setting, learner, first
    node_type = {
        "threshold-c": setting.prices.index(min(setting.prices)),
        "threshold-s": setting.speedups.index(max(setting.speedups)),
        "threshold-0": 0,
    }[spec.operator_policy.name]
    policy: Any = spec.operator_policy.for_operator(op)  # a Threshold
    high, low = policy.threshold, policy.beta * policy.threshold
    return setting, plain.threshold(setting, node_type=node_type, high=high, low=low), first


def _parallel(rates: Floats, threads: int) -> Figure:
    jobs = [
        (OneOperator(operator_policy=Manager("ql"), seed=seed, as_published=True), rates, None)
        for seed in range(1, 11)
    ]

    def seconds(workers: int) -> float:
        began = time.perf_counter()
        run_all(jobs, threads=workers)
        return time.perf_counter() - began

    # In turns, and the best of each: a neighbour's burst of work should not fall on one side only.
    pairs = [(seconds(1), seconds(threads)) for _ in range(2 * _REPEATS)]
    ratio = min(alone for alone, _ in pairs) / min(together for _, together in pairs)
    return Figure(name=f"ten seeds, {threads} threads over one", value=ratio, unit="x", at_least=1.5)


def _planning(rates: Floats) -> Iterator[Figure]:
    for types, most in ((3, 0.3), (6, 5.0)):
        spec = OneOperator(operator_policy=Manager("vi"), infrastructure=f"A:{types}", as_published=True)
        op = operator_of(spec, rates, rates[-TRAINING_SLOTS:], 1)
        policy = ValueIteration(
            node_types=op.node_types,
            deployments=op.deployments,
            problem=op.problem,
            queue=op.queue,
            training=op.training,
        )
        policy.initial()  # compiled
        began = time.perf_counter()
        policy.initial()
        took = time.perf_counter() - began
        yield Figure(name=f"value iteration, A:{types}, 10 replicas", value=took, unit="s", at_most=most)


def joint_figures(rates: Floats) -> Iterator[Figure]:
    """Planning for four operators at once, and the time of a decision as operators are added (Russo 2018)."""
    times = mdp_pipeline.decision_times(rates[:100_000], slots=_JOINT_SLOTS, repeats=_REPEATS)
    four = times[-1]
    yield Figure(
        name="joint value iteration, 4 operators of 5 replicas", value=four.plan_s, unit="s", at_most=10
    )
    for one in times:
        name = f"an agent's decision, {one.operators} operators"
        yield Figure(name=name, value=1e6 * one.agent_s, unit="us per operator")
        name = f"centralised RL+ decision, {one.operators} operators"
        yield Figure(name=name, value=1e6 * one.central_s, unit="us")
    name = "an agent's decision, 4 operators over 1"
    yield Figure(name=name, value=four.agent_s / times[0].agent_s, unit="x", at_most=1.5)


def _large() -> Iterator[Figure]:
    for policy in ("ql", "ql-pds", "ql-pds-plus"):
        # In a separate process, so that its peak memory is this run's alone.
        context = multiprocessing.get_context("spawn")
        with context.Pool(1) as pool:
            rate, gigabytes = pool.apply(_large_run, (policy,))
        yield Figure(name=f"{policy}, A:10, 20 replicas", value=rate / 1e6, unit="M slots/s")
        yield Figure(
            name=f"{policy}, A:10, 20 replicas, peak memory", value=gigabytes, unit="GB", at_most=1.0
        )


def _large_run(policy: str) -> tuple[float, float]:
    rates = day_and_week(slots=SLOTS, seed=1).rates
    spec = OneOperator(
        operator_policy=Manager(policy), infrastructure="A:10", max_replicas=20, as_published=True
    )
    outcome = run(spec, rates)
    return outcome.slots_per_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
