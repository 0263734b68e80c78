"""Of all deployments, those that `adaptive` plans with leave nothing out that would be worth having."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.domain.infrastructure import NodeType
from penstock.domain.objective import Weights
from penstock.perf.deployments import deployments
from penstock.perf.operator import response_time
from penstock.perf.queueing import m_g_1
from penstock.policy.operator.adaptive import Adaptive
from penstock.policy.rl.post_decision import BelievedModel
from penstock.policy.rl.problem import operator_problem
from penstock.policy.rl.worth_having import choose_candidates, find_limit

BOUND_S, SERVICE_S = 0.05, 0.01


@settings(deadline=None, max_examples=60)
@given(
    kinds=st.lists(st.tuples(st.floats(0.3, 4), st.floats(0.2, 5)), min_size=1, max_size=3),
    most=st.integers(1, 4),
    rate=st.floats(1, 900),
)
def test_nothing_is_cheaper_and_can_take_as_much(
    kinds: list[tuple[float, float]], most: int, rate: float
) -> None:
    """Mixed deployments included: an evenly split load is limited by the slowest replica."""
    types = tuple(NodeType(name=f"t{i}", speedup=s, price=p) for i, (s, p) in enumerate(kinds))
    space = deployments(types, most)
    queue = m_g_1(SERVICE_S, 0.5)
    policy = Adaptive(
        node_types=types,
        deployments=space,
        problem=operator_problem(
            space, levels=3, max_rate=300.0, max_response_time_s=BOUND_S, weights=Weights()
        ),
        believed=BelievedModel(deployments=space, queue=queue),
        optimism=1.0,
    )
    me = policy.initial()
    for candidate in range(me.handles.size):
        me.limit[candidate] = find_limit(me, candidate)
    choose_candidates(me, -1)
    chosen = me.chosen[: me.chosen_count[0]]
    enough = [me.holding[one] for one in chosen if me.limit[one] >= rate]
    cheapest = min(enough, default=np.inf)
    for handle in range(space.replicas.size):
        if response_time(queue, space, handle, rate * 1.000001) <= BOUND_S:
            cost = policy.problem.resources * space.cost[handle] / policy.problem.cost_scale
            assert cost >= cheapest - 1e-12
