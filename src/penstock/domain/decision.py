"""What a manager answers: hold, or change the replicas, always with the reason."""

from dataclasses import dataclass
from typing import TypeAlias

from penstock.domain.deployment import Replicas


@dataclass(frozen=True, slots=True)
class Hold:
    """Leave the operator as it is."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Run these replicas instead."""

    target: Replicas
    score: float  # expected benefit, from 0 to 1: how requests of several operators are ranked
    reason: str


Decision: TypeAlias = Hold | Scale
