"""What a person may order a controller to do."""

from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from penstock.domain.deployment import Replicas
from penstock.domain.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Change nothing until then."""

    until_s: float

    def __post_init__(self) -> None:
        if not isfinite(self.until_s):
            raise InputError(f"pause until {self.until_s}: a pause must have an end")


@dataclass(frozen=True, slots=True)
class Resume:
    """End a pause early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """Run exactly these replicas, whatever the policies say, until lifted."""

    operator: str
    target: Replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """Let this operator's policy decide for it again."""

    operator: str


Order: TypeAlias = Pause | Resume | Override | Lift
