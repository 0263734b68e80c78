"""What global policies share (Cardellini 2018, sec. 7): requests in order of score, conflicts prevented."""

from collections.abc import Mapping, Sequence

from penstock.domain.decision import Decision, Scale
from penstock.domain.observation import OperatorObservation
from penstock.domain.request import (
    Migrate,
    Refused,
    Request,
    ScaleIn,
    ScaleOut,
    Verdict,
    new_nodes,
    request_of,
)


def by_priority(requests: Sequence[Request]) -> list[Request]:
    """For each kind of action, highest score first; scaling out before migrating before scaling in."""
    kinds = (ScaleOut, Migrate, ScaleIn)
    return sorted(
        requests, key=lambda request: (kinds.index(type(request)), -request.score, request.operator)
    )


def without_conflicts(requests: Sequence[Request]) -> tuple[list[Request], list[Refused]]:
    """Drop requests for a node or an operator that a request with a higher score already has.

    Two requests conflict when they want to put a replica on the same node; and one operator
    is changed only once per round, or the second change would undo what the first assumed.
    """
    if len(requests) < 2:  # nobody to be in conflict with
        return list(requests), []
    kept: list[Request] = []
    dropped: list[Refused] = []
    nodes: dict[str, Request] = {}
    operators: dict[str, Request] = {}
    for request in sorted(requests, key=lambda one: -one.score):
        rival = operators.get(request.operator)
        taken = [node for node in new_nodes(request) if node in nodes]
        if rival is not None:
            dropped.append(
                Refused(request, f"operator '{request.operator}' has a request of score {rival.score:.2f}")
            )
        elif taken:
            winner = nodes[taken[0]]
            why = f"node '{taken[0]}' goes to operator '{winner.operator}' with score {winner.score:.2f}"
            dropped.append(Refused(request, why))
        else:
            kept.append(request)
            operators[request.operator] = request
            nodes.update(dict.fromkeys(new_nodes(request), request))
    return by_priority(kept), dropped


def decided_above(
    decisions: Mapping[str, Decision], seen: Mapping[str, OperatorObservation], requests: Sequence[Request]
) -> Verdict:
    """The verdict of an Application Manager that decides itself: its own changes, and nobody else's."""
    own = [
        request_of(operator, seen[operator].replicas, decision)
        for operator, decision in decisions.items()
        if isinstance(decision, Scale)
    ]
    why = "the Application Manager decides for all operators"
    return Verdict(tuple(own), tuple([Refused(request, why) for request in requests]), decisions)
