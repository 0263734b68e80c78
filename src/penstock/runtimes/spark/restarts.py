"""When what failed is started again: later each time, until it has been well for a while."""

from collections.abc import Collection

_FIRST_S, _LONGEST_S = 1.0, 60.0  # pauses: each twice the one before
_WELL_S = 600.0  # after which earlier failures are forgotten


class Restarts:
    """Of things with names; whoever asks brings the time with them."""

    def __init__(self) -> None:
        self.failures: dict[str, int] = {}  # in a row
        self._due_s: dict[str, float] = {}  # of those that are down
        self._started_s: dict[str, float] = {}

    def failed(self, down: Collection[str], now_s: float) -> list[str]:
        """Those among all that is down of which it was not known."""
        self._due_s = {name: due_s for name, due_s in self._due_s.items() if name in down}
        new = [name for name in down if name not in self._due_s]
        for name in new:
            well = now_s - self._started_s.get(name, now_s) > _WELL_S
            self.failures[name] = 1 if well else self.failures.get(name, 0) + 1
            self._due_s[name] = now_s + min(_FIRST_S * 2 ** (self.failures[name] - 1), _LONGEST_S)
        return new

    def due_in_s(self, name: str, now_s: float) -> float:
        """How long until one that is down is started again."""
        return max(self._due_s[name] - now_s, 0.0)

    def due(self, now_s: float) -> list[str]:
        """Those that are to be started now."""
        due = [name for name, due_s in self._due_s.items() if due_s <= now_s]
        for name in due:
            del self._due_s[name]
            self._started_s[name] = now_s
        return due
