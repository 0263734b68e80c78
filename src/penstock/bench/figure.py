"""One figure of a benchmark."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measurement and its target."""

    name: str
    value: float
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ok(self) -> bool | None:
        if self.at_least is not None:
            return self.value >= self.at_least
        return self.value <= self.at_most if self.at_most is not None else None
