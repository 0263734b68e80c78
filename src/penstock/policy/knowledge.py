"""What a policy can be given when it is built: its fields are filled in from here by name.

A policy says what it needs by naming it: a field `service_time_s` gets the operator's service
time, `problem` its decision process, `node_types` the node types on offer. The builder of
policies (`control.build` from measurements, `simulation` from what is simulated) makes one of
these values, and the registry does the rest.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from penstock.compiled import Floats
from penstock.domain.application import Application
from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Objective, Weights
from penstock.perf.deployments import Deployments
from penstock.perf.latency import check_objective, without_delays
from penstock.perf.queueing import QueueModel
from penstock.policy.rl.post_decision import BelievedModel
from penstock.policy.rl.problem import Problem, operator_problem


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorKnowledge:
    """One operator, as the policy that manages it may know it."""

    node_types: tuple[NodeType, ...]
    deployments: Deployments  # 1 to max_replicas replicas over these node types
    queue: QueueModel
    service_time_s: float  # mean, on a node of speedup 1
    service_scv: float
    max_response_time_s: float  # the bound it is to stay within
    weights: Weights  # of its own costs
    cost_scale: float  # the price that counts as 1
    levels: int  # of the arrival rate that learners distinguish
    max_rate: float  # tuples/s at the top of the highest level
    rates: Floats  # loads it will meet, or is likely to meet
    training: Floats  # loads a planner may learn transitions from
    model: Callable[[], BelievedModel]  # of response times, right or not
    as_published: bool = False  # behave as the published simulator does
    published_updates: bool = False  # learn as the published code does

    @property
    def max_replicas(self) -> int:
        return self.deployments.max_replicas

    @property
    def peak_rate(self) -> float:
        return float(self.rates.max())

    @property
    def expected_steps(self) -> int:
        return int(self.rates.size)

    @property
    def believed(self) -> BelievedModel:
        return self.model()

    @cached_property
    def problem(self) -> Problem:
        return operator_problem(
            self.deployments,
            levels=self.levels,
            max_rate=self.max_rate,
            max_response_time_s=self.max_response_time_s,
            weights=self.weights,
            cost_scale=self.cost_scale,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class ApplicationKnowledge:
    """A whole application, as its Application Manager may know it."""

    application: Application  # service times on a node of speedup 1
    objective: Objective
    node_types: tuple[NodeType, ...]
    training: Floats  # rates of the source, for managers that plan with their transitions
    max_rate: float  # of the source, at the top of the highest level
    interval_s: float  # between two rounds
    levels: int = 30
    delays_s: Mapping[str, float] = field(default_factory=dict)  # constant, whatever load and nodes
    as_published: bool = False

    @property
    def limit_s(self) -> float:
        """The tightest limit of any path."""
        return min(self.objective.for_path(path) for path in self.application.paths)

    @property
    def queueing_objective(self) -> Objective:
        """What remains of every path's limit after constant delays."""
        # Delays are checked before they are subtracted: they may leave less than nothing.
        fastest = max(node_type.speedup for node_type in self.node_types)
        check_objective(self.application, self.objective, fastest=fastest, delays_s=self.delays_s)
        return without_delays(self.application, self.objective, self.delays_s)


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeKnowledge:
    """A node, as its Node Manager may know it: nothing in advance."""
