"""What Operator and Node Managers ask the Application Manager for, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from penstock.domain.decision import Decision, Scale
from penstock.domain.deployment import Replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOut:
    """Run more replicas of an operator, the new ones on these nodes (none named where placement is free)."""

    operator: str
    target: Replicas
    nodes: tuple[str, ...]
    score: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleIn:
    """Run fewer replicas of an operator, taking them from these nodes."""

    operator: str
    target: Replicas
    nodes: tuple[str, ...]
    score: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrate:
    """Move one replica of an operator to another node."""

    operator: str
    origin: str
    target: str
    score: float
    reason: str


Request: TypeAlias = ScaleOut | ScaleIn | Migrate


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that was not granted, and why."""

    request: Request
    reason: str


_NONE: Mapping[str, Decision] = {}


class Verdict(NamedTuple):
    """What the Application Manager made of the requests."""

    granted: tuple[Request, ...]
    refused: tuple[Refused, ...] = ()
    decisions: Mapping[str, Decision] = _NONE  # by operator, where it decides itself


def request_of(
    operator: str, now: Replicas, wanted: Scale, nodes: tuple[str, ...] = ()
) -> ScaleOut | ScaleIn:
    """An Operator Manager's decision as a request; exchanging replicas one for one counts as adding."""
    kind = ScaleIn if wanted.target.total < now.total else ScaleOut
    return kind(
        operator=operator, target=wanted.target, nodes=nodes, score=wanted.score, reason=wanted.reason
    )


def new_nodes(request: Request) -> tuple[str, ...]:
    """The nodes a request wants to put replicas on."""
    match request:
        case ScaleOut():
            return request.nodes
        case Migrate():
            return (request.target,)
        case ScaleIn():
            return ()
