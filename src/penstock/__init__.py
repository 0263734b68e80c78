"""Penstock keeps stream-processing applications inside their response-time objective at the lowest cost.

What people use is here:

    penstock.attach(spark, query, objective=...)   put a running Spark query under control
    penstock.App                                   an application whose operators are scaled one by one
    penstock.simulate(rates, policy=...)           try a policy on your own load, without Spark
    penstock.compare(rates, policies=[...])        several of them, side by side
    penstock.policies()                            all policies, with every parameter

and what a policy of your own needs: `OperatorObservation`, `Hold`, `Scale`, `Param`,
`operator_policy`, `application_policy`, `node_policy`, and for a compiled one `CompiledPolicy`,
`step_of`, `Seen`, `Deployments` and what can be asked of them (docs/add-a-policy.md).
"""

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from penstock.apps.entry import AppEntry as AppEntry
    from penstock.compiled import Floats as Floats
    from penstock.compiled import Ints as Ints
    from penstock.control.safety_settings import SafetySettings as SafetySettings
    from penstock.control.spec import Manager as Manager
    from penstock.domain.decision import Decision as Decision
    from penstock.domain.decision import Hold as Hold
    from penstock.domain.decision import Scale as Scale
    from penstock.domain.deployment import Replicas as Replicas
    from penstock.domain.errors import InputError as InputError
    from penstock.domain.infrastructure import NodeType as NodeType
    from penstock.domain.objective import Objective as Objective
    from penstock.domain.objective import Weights as Weights
    from penstock.domain.observation import ApplicationObservation as ApplicationObservation
    from penstock.domain.observation import NodeObservation as NodeObservation
    from penstock.domain.observation import OperatorObservation as OperatorObservation
    from penstock.domain.request import Migrate as Migrate
    from penstock.domain.request import Refused as Refused
    from penstock.domain.request import Request as Request
    from penstock.domain.request import ScaleIn as ScaleIn
    from penstock.domain.request import ScaleOut as ScaleOut
    from penstock.domain.request import Verdict as Verdict
    from penstock.live.attach import Attached
    from penstock.live.run import LiveRun as LiveRun
    from penstock.live.settings import LiveSettings as LiveSettings
    from penstock.live.settings import controller_for as controller_for
    from penstock.perf.deployments import NOWHERE as NOWHERE
    from penstock.perf.deployments import Deployments as Deployments
    from penstock.perf.deployments import adding as adding
    from penstock.perf.deployments import after as after
    from penstock.perf.deployments import cost_of as cost_of
    from penstock.perf.deployments import count_of as count_of
    from penstock.perf.deployments import deployments as deployments
    from penstock.perf.deployments import removing as removing
    from penstock.perf.deployments import replicas_of as replicas_of
    from penstock.perf.deployments import slowest_of as slowest_of
    from penstock.perf.deployments import speed_of as speed_of
    from penstock.policy.api import ApplicationPolicy as ApplicationPolicy
    from penstock.policy.api import NodePolicy as NodePolicy
    from penstock.policy.api import OperatorPolicy as OperatorPolicy
    from penstock.policy.kernel import CompiledPolicy as CompiledPolicy
    from penstock.policy.kernel import Seen as Seen
    from penstock.policy.kernel import step_of as step_of
    from penstock.policy.operator.node_choice import NodeChoice as NodeChoice
    from penstock.policy.parameters import Param as Param
    from penstock.policy.parameters import Value
    from penstock.policy.registry import PolicyEntry
    from penstock.policy.registry import application_policy as application_policy
    from penstock.policy.registry import node_policy as node_policy
    from penstock.policy.registry import operator_policy as operator_policy
    from penstock.reconfigure.method import Method as Method
    from penstock.runtimes.sim.gym import OperatorScalingEnv as OperatorScalingEnv
    from penstock.runtimes.spark.cluster import NodeKind as NodeKind
    from penstock.runtimes.spark.topology import App as App
    from penstock.simulation.hosts import Hosts as Hosts
    from penstock.simulation.result import SimulationResult as SimulationResult
    from penstock.simulation.spec import Shift as Shift

__version__ = "0.1.0"

# Imported when first asked for, so that `import penstock` stays quick.
_HOMES = {
    "App": "penstock.runtimes.spark.topology",
    "AppEntry": "penstock.apps.entry",
    "ApplicationObservation": "penstock.domain.observation",
    "ApplicationPolicy": "penstock.policy.api",
    "CompiledPolicy": "penstock.policy.kernel",
    "Decision": "penstock.domain.decision",
    "Deployments": "penstock.perf.deployments",
    "Floats": "penstock.compiled",
    "Hold": "penstock.domain.decision",
    "Hosts": "penstock.simulation.hosts",
    "InputError": "penstock.domain.errors",
    "Ints": "penstock.compiled",
    "LiveRun": "penstock.live.run",
    "LiveSettings": "penstock.live.settings",
    "Manager": "penstock.control.spec",
    "Method": "penstock.reconfigure.method",
    "Migrate": "penstock.domain.request",
    "NOWHERE": "penstock.perf.deployments",
    "NodeChoice": "penstock.policy.operator.node_choice",
    "NodeKind": "penstock.runtimes.spark.cluster",
    "NodeObservation": "penstock.domain.observation",
    "NodePolicy": "penstock.policy.api",
    "NodeType": "penstock.domain.infrastructure",
    "Objective": "penstock.domain.objective",
    "OperatorObservation": "penstock.domain.observation",
    "OperatorPolicy": "penstock.policy.api",
    "OperatorScalingEnv": "penstock.runtimes.sim.gym",
    "Param": "penstock.policy.parameters",
    "Refused": "penstock.domain.request",
    "Replicas": "penstock.domain.deployment",
    "Request": "penstock.domain.request",
    "SafetySettings": "penstock.control.safety_settings",
    "Scale": "penstock.domain.decision",
    "ScaleIn": "penstock.domain.request",
    "ScaleOut": "penstock.domain.request",
    "Seen": "penstock.policy.kernel",
    "Shift": "penstock.simulation.spec",
    "SimulationResult": "penstock.simulation.result",
    "Verdict": "penstock.domain.request",
    "Weights": "penstock.domain.objective",
    "adding": "penstock.perf.deployments",
    "after": "penstock.perf.deployments",
    "application_policy": "penstock.policy.registry",
    "controller_for": "penstock.live.settings",
    "cost_of": "penstock.perf.deployments",
    "count_of": "penstock.perf.deployments",
    "deployments": "penstock.perf.deployments",
    "node_policy": "penstock.policy.registry",
    "operator_policy": "penstock.policy.registry",
    "removing": "penstock.perf.deployments",
    "replicas_of": "penstock.perf.deployments",
    "slowest_of": "penstock.perf.deployments",
    "speed_of": "penstock.perf.deployments",
    "step_of": "penstock.policy.kernel",
}
__all__ = [
    "NOWHERE",
    "App",
    "AppEntry",
    "ApplicationObservation",
    "ApplicationPolicy",
    "CompiledPolicy",
    "Decision",
    "Deployments",
    "Floats",
    "Hold",
    "Hosts",
    "InputError",
    "Ints",
    "LiveRun",
    "LiveSettings",
    "Manager",
    "Method",
    "Migrate",
    "NodeChoice",
    "NodeKind",
    "NodeObservation",
    "NodePolicy",
    "NodeType",
    "Objective",
    "OperatorObservation",
    "OperatorPolicy",
    "OperatorScalingEnv",
    "Param",
    "Refused",
    "Replicas",
    "Request",
    "SafetySettings",
    "Scale",
    "ScaleIn",
    "ScaleOut",
    "Seen",
    "Shift",
    "SimulationResult",
    "Verdict",
    "Weights",
    "__version__",
    "adding",
    "after",
    "application_policy",
    "attach",
    "compare",
    "controller_for",
    "cost_of",
    "count_of",
    "deployments",
    "node_policy",
    "operator_policy",
    "policies",
    "removing",
    "replicas_of",
    "simulate",
    "slowest_of",
    "speed_of",
    "step_of",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'penstock' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)


def attach(
    spark: "SparkSession",
    query: "StreamingQuery | Sequence[StreamingQuery]",
    *,
    objective: "Objective",
    policy: "str | type | Manager" = "adaptive",
    parameters: "Mapping[str, Value] | None" = None,
    max_replicas: int = 10,
    interval_s: float = 10.0,
    advise: bool = False,
    out: "Path | str | None" = None,
    journal: "Path | str | None" = None,
    seed: int = 1,
    safety: "Callable[[SafetySettings], SafetySettings] | None" = None,
) -> "Attached":
    """Put a running streaming query, or several of one application, under control.

    The query is not touched: its application gets more or fewer executors, based on what Spark
    reports about it; several queries share them, and the slowest one counts. `advise=True` decides and
    explains, and changes nothing. `out` is a folder for journal, orders, memory over a restart and
    report, as `penstock run` has one; `journal` is a file for the journal alone. `policy` is a name,
    `module:Class` or your own class, `parameters` whatever differs from its defaults; `safety` may
    change how careful it is. Calling `stop()` on the result leaves the query as it is and writes the
    report. See docs/spark.md.

        attached = penstock.attach(spark, query, objective=penstock.Objective(response_time_s=5))
    """
    from penstock.live.attach import attach as put_under_control
    from penstock.reports.attached import write_report

    return put_under_control(
        spark,
        query,
        objective=objective,
        policy=policy,
        parameters=parameters,
        max_replicas=max_replicas,
        interval_s=interval_s,
        advise=advise,
        out=out,
        journal=journal,
        seed=seed,
        safety=safety or (lambda settings: settings),
        ended=write_report,
    )


def simulate(
    rates: "npt.ArrayLike",
    policy: "str | type | Manager" = "adaptive",
    *,
    parameters: "Mapping[str, Value] | None" = None,
    training: "npt.ArrayLike | None" = None,
    with_history: bool = False,
    **settings: Any,
) -> "SimulationResult":
    """What a policy would have done, and cost, under these arrival rates (tuples/s, one per slot).

    `policy` is a name, `module:Class` or your own class, `parameters` whatever differs from its
    defaults.

    One operator by default: `service_rate` is what one replica on a node of speedup 1 can process,
    `slo_s` the response-time objective, `max_rate` the highest rate learners distinguish,
    `infrastructure` the node types on offer, `max_replicas`, `seed` and so on, as `penstock simulate`
    has them. `application="diamond"` simulates a graph, `application_policy="token-bucket"` an
    application under its managers. A keyword that does not apply is an error.

        rates = numpy.loadtxt("my-rates.txt")
        result = penstock.simulate(rates, "ql-pds-plus", service_rate=180, max_rate=650, slo_s=0.05)
        print(result.avg_cost, result.violations_pct, result.mean_replicas)
    """
    from penstock.simulation.ask import simulated, simulation_of

    spec = simulation_of(policy, parameters=parameters, **settings)
    return simulated(rates, spec, training=training, with_history=with_history)


def compare(
    rates: "npt.ArrayLike",
    policies: "Sequence[str | type | Manager]",
    *,
    seeds: int = 5,
    threads: int | None = None,
    with_history: bool = False,
    **settings: Any,
) -> "dict[str, list[SimulationResult]]":
    """The same load under several policies: results by policy, the cheapest first.

    Policies whose behaviour is random run once per seed. `penstock.Manager("vi", {"gamma": 0.9})`
    sets parameters; settings are those of `simulate`.

        found = penstock.compare(rates, ["threshold-c", "ql-pds", "vi"], service_rate=180)
        for policy, results in found.items():
            print(policy, sum(one.avg_cost for one in results) / len(results))
    """
    from penstock.simulation.ask import compared

    return compared(
        rates,
        policies,
        seeds=seeds,
        threads=threads or os.cpu_count() or 1,
        with_history=with_history,
        **settings,
    )


def policies() -> "dict[str, dict[str, PolicyEntry]]":
    """Every policy there is, by level (operator, application, node) and name.

    An entry has a `title`, `traits` and `parameters`, each with its default, help and bounds.

        for name, entry in penstock.policies()["operator"].items():
            print(name, entry.title, list(entry.parameters))
    """
    from penstock.policy.registry import Level, entries

    return {level.value: entries(level) for level in Level}
