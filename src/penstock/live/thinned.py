"""The course of something that may go on for ever, in a bounded number of its moments."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Generic, TypeVar

T = TypeVar("T")
Line = float | None  # the value of one line at one moment; None where it was not measured

_AT_ONCE = 64  # moments that are thinned out together, so that one alone takes next to no time


class Thinned(Generic[T]):
    """All moments while there are few; then, of every stretch, the first, the last, and those in which a line
    is lowest or highest.

    So every peak and every trough stays, as it was and when it was. All stretches have the same number of
    moments, but for the last. What is lost is what happened between: also that a line was not measured for
    a while, where that was shorter than a stretch.
    """

    def __init__(self, most: int, lines_of: Callable[[T], Sequence[Line]]) -> None:
        """`most` moments are left; it must be enough for two stretches and what is thinned out together."""
        self._most, self._lines_of = most, lines_of
        self._length = 1  # of a stretch, in moments
        self._stretches: list[tuple[T, ...]] = []  # what is left of those that are over
        self._latest: list[T] = []  # what is left of the one that is not
        self._begun = 0  # moments in it
        self._left = 0  # of all stretches that are over
        self.seen = 0

    def add(self, moment: T) -> None:
        self.seen += 1
        self._latest.append(moment)
        self._begun += 1
        if len(self._latest) > _AT_ONCE:
            self._latest = list(self._extremes(self._latest))
        if self._begun == self._length:
            self._stretches.append(self._extremes(self._latest))
            self._left += len(self._stretches[-1])
            self._latest, self._begun = [], 0
        while len(self) > self._most and len(self._stretches) > 1:
            self._merge()

    def __len__(self) -> int:
        return self._left + len(self._latest)

    def __iter__(self) -> Iterator[T]:
        yield from chain(*self._stretches, self._latest)

    @property
    def is_thinned(self) -> bool:
        return self.seen > len(self)

    def _merge(self) -> None:
        """Every two stretches become one, twice as long."""
        if len(self._stretches) % 2:  # one is left over: it is not over any more
            self._latest = [*self._stretches.pop(), *self._latest]
            self._begun += self._length
        pairs = zip(self._stretches[::2], self._stretches[1::2], strict=True)
        self._stretches = [self._extremes((*first, *second)) for first, second in pairs]
        self._left = sum(map(len, self._stretches))
        self._length *= 2

    def _extremes(self, moments: Sequence[T]) -> tuple[T, ...]:
        """The first, the last, and those in which a line is lowest or highest, in their order."""
        chosen = {0, len(moments) - 1}
        if len(moments) > 2:
            for line in zip(*map(self._lines_of, moments), strict=True):
                measured = [(value, at) for at, value in enumerate(line) if value is not None]
                if measured:
                    chosen |= {min(measured)[1], max(measured)[1]}
        return tuple(moments[at] for at in sorted(chosen))
