"""The contract every runtime keeps. Subclass it, start your runtime, run pytest.

    class TestMyRuntime(RuntimeContract):
        operators = ("parse", "count")
        scaled = "count"

        def start(self) -> tuple[Monitor, Actuator]:
            return MyMonitor(...), MyActuator(...)

        def advance(self) -> None:
            time.sleep(1)

Give `node_types` and `changes_within` where they differ from the defaults here, and `nothing_runs`
where your runtime can be kept from working. `start` may return the same runtime again and again:
every claim takes it as it finds it, once nothing is under way.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import isnan

import pytest

from penstock.control.ports import Actuator, Monitor
from penstock.domain.deployment import Replicas
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.domain.request import Request, ScaleIn, ScaleOut, Verdict

_DURATIONS = ("response_time_s", "response_time_p95_s", "service_time_s")
_AMOUNTS = ("arrival_rate", "utilisation", "service_variance_s2", "backlog", "selectivity", "skew")
_AT_WORK = ("utilisation", "utilisation_by_replica", "skew", "response_time_p95_s", "service_time_s")


class RuntimeContract:
    """What the control loop relies on, whatever the engine."""

    operators: tuple[str, ...]  # all the application has
    scaled: str  # the one to be scaled; up to two replicas of it must be possible
    node_types: int = 1
    changes_within: int = 1  # calls of `advance` until a granted change has come to its end

    def start(self) -> tuple[Monitor, Actuator]:
        """A running application, with input."""
        raise NotImplementedError

    def advance(self) -> None:
        """Let some time pass: a slot, a second or two."""
        raise NotImplementedError

    @contextmanager
    def nothing_runs(self) -> Iterator[None]:
        """A time in which the scaled operator has input and cannot work; it works again afterwards."""
        pytest.skip("nothing keeps this runtime from working")
        yield

    # --- What is true of every observation, and of any two in a row. ---------------------------

    def test_an_observation_names_every_operator_once_with_a_count_for_every_node_type(self) -> None:
        watch = _Watch(self)
        for one in watch.look().operators:
            assert len(one.replicas.counts) == self.node_types
            assert one.replicas.total >= 1

    def test_time_never_goes_back_and_no_operator_is_ahead_of_its_application(self) -> None:
        watch = _Watch(self)
        before = watch.look().at_s
        for _ in range(3):
            self.advance()
            watch.look()
        assert watch.last.at_s > before, "time stands still"

    def test_what_is_not_measured_is_unknown_and_no_duration_is_zero(self) -> None:
        watch = _Watch(self)
        for _ in range(3):
            for one in watch.look().operators:
                _check_metrics(one)
            self.advance()

    def test_where_nothing_ran_nothing_of_it_is_measured(self) -> None:
        watch = _Watch(self)
        with self.nothing_runs():
            watch.look()  # takes what was measured before
            self.advance()
            one = self._one(watch.look())
            measured = {name: getattr(one, name) for name in _AT_WORK if getattr(one, name) is not None}
            assert measured == {}, f"operator '{one.operator}' could not work, and yet this was measured"
            _check_metrics(one)

    # --- What acting does, and what it leaves alone. ------------------------------------------

    def test_observing_twice_without_acting_changes_nothing_that_matters(self) -> None:
        watch = _Watch(self)
        first, second = watch.look(), watch.look()
        assert _deployed(first) == _deployed(second)
        assert first.reconfiguring == second.reconfiguring == ()

    def test_applying_an_empty_verdict_is_not_an_action(self) -> None:
        watch = _Watch(self)
        before = watch.look()
        watch.actuator.apply(Verdict(()))
        for _ in range(2):
            after = watch.look()
            assert _deployed(after) == _deployed(before)
            assert after.reconfiguring == ()
            self.advance()

    def test_a_granted_scale_out_shows_up_as_more_replicas_and_meanwhile_as_under_way(self) -> None:
        watch = _Watch(self)
        watch.bring_to(1)
        before = _deployed(watch.look())
        watch.bring_to(2)
        assert _deployed(watch.look()) == before | {self.scaled: _more(before[self.scaled])}

    def test_a_granted_scale_in_shows_up_as_fewer_replicas_and_meanwhile_as_under_way(self) -> None:
        watch = _Watch(self)
        watch.bring_to(2)
        before = _deployed(watch.look())
        watch.bring_to(1)
        assert _deployed(watch.look()) == before | {self.scaled: _fewer(before[self.scaled])}

    def test_the_last_replica_stays(self) -> None:
        watch = _Watch(self)
        watch.bring_to(1)
        last = self._one(watch.look()).replicas
        again = ScaleIn(operator=self.scaled, target=last, nodes=(), score=1.0, reason="contract")
        watch.actuator.apply(Verdict((again,)))
        watch.wait_for(last)
        assert self._one(watch.look()).replicas == last

    def _one(self, seen: ApplicationObservation) -> OperatorObservation:
        return next(one for one in seen.operators if one.operator == self.scaled)


class _Watch:
    """A runtime at work. Every look at it is held against the one before."""

    def __init__(self, contract: RuntimeContract) -> None:
        self._contract = contract
        self._monitor, self.actuator = contract.start()
        self.last = self._monitor.observe()
        self._settle()

    @property
    def _replicas(self) -> Replicas:
        return self._contract._one(self.last).replicas

    def look(self) -> ApplicationObservation:
        before, seen = self.last, self._monitor.observe()
        names = [one.operator for one in seen.operators]
        assert sorted(names) == sorted(self._contract.operators), "every operator once, and no other"
        assert seen.at_s >= before.at_s, "time went back"
        measured_at_s = {one.operator: one.at_s for one in before.operators}
        for one in seen.operators:
            assert one.at_s <= seen.at_s, f"operator '{one.operator}' is ahead of its application"
            assert one.at_s >= measured_at_s[one.operator], f"time of operator '{one.operator}' went back"
        self.last = seen
        return seen

    def bring_to(self, replicas: int) -> None:
        """Grant one change after another until so many replicas of the scaled operator run."""
        while self._replicas.total != replicas:
            grows = self._replicas.total < replicas
            kind, target = (ScaleOut, _more(self._replicas)) if grows else (ScaleIn, _fewer(self._replicas))
            request: Request = kind(
                operator=self._contract.scaled, target=target, nodes=(), score=1.0, reason="contract"
            )
            self.actuator.apply(Verdict((request,)))
            self.wait_for(target)

    def wait_for(self, target: Replicas) -> None:
        """Until the scaled operator runs these replicas and nothing is under way."""
        self._settle(target)
        assert self._replicas == target

    def _settle(self, target: Replicas | None = None) -> None:
        name, within = self._contract.scaled, self._contract.changes_within
        for _ in range(within + 1):
            under_way = self.look().reconfiguring
            assert target in {None, self._replicas} or name in under_way, (
                f"operator '{name}': {target} was granted, {self._replicas} run, and no change is under way"
            )
            if not under_way:
                return
            self._contract.advance()
        raise AssertionError(f"{', '.join(under_way)}: still under way after {within} calls of advance")


def _deployed(seen: ApplicationObservation) -> dict[str, Replicas]:
    return {one.operator: one.replicas for one in seen.operators}


def _more(replicas: Replicas) -> Replicas:
    return replicas.changed(0, +1)


def _fewer(replicas: Replicas) -> Replicas:
    used = next(index for index, count in enumerate(replicas.counts) if count)
    return replicas.changed(used, -1)


def _check_metrics(one: OperatorObservation) -> None:
    for name in (*_DURATIONS, *_AMOUNTS):
        value = getattr(one, name)
        what = f"operator '{one.operator}': {name}={value}"
        assert value is None or not isnan(value), f"{what}; what is not known is None"
        assert value is None or value >= 0, f"{what}; it cannot be negative"
        # Whatever is processed takes time: a duration of 0 is one that nobody measured.
        assert value != 0 or name not in _DURATIONS, f"{what}; what was not measured is None"
    if one.utilisation is None:
        assert one.utilisation_by_replica is None
        assert one.skew is None
