"""What was learned can be saved and put back."""

from dataclasses import replace
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from penstock.compiled import Floats
from penstock.control.spec import Manager
from penstock.domain.errors import InputError
from penstock.perf.deployments import with_types
from penstock.policy.kernel import CompiledPolicy
from penstock.policy.memory import Learned, learned, with_learned
from penstock.policy.registry import Level
from penstock.simulation.one_operator import operator_of
from penstock.simulation.spec import OneOperator

SPEC = OneOperator(operator_policy=Manager("ql-pds-plus"), max_replicas=4)


def built(spec: OneOperator = SPEC, rates: Floats | None = None) -> CompiledPolicy[Any]:
    rates = np.full(50, 300.0) if rates is None else rates
    policy: CompiledPolicy[Any] = spec.operator_policy.entry(Level.OPERATOR).build(
        operator_of(spec, rates, rates, 1), spec.operator_policy.parameters
    )
    return policy


def through_a_file(saved: Learned) -> Learned:
    file = BytesIO()
    for array in saved.values():
        np.save(file, array)
    file.seek(0)
    return {name: np.load(file) for name in saved}


def test_saved_arrays_are_copies_of_what_is_learned_and_of_nothing_that_was_told() -> None:
    policy = built()
    memory = policy.initial()
    saved = learned(memory)
    assert saved
    assert not any("deployments" in name or "problem" in name for name in saved)
    for name, array in saved.items():
        array.fill(7)
        assert array.size == 0 or not np.array_equal(learned(memory)[name], array)


def test_a_restored_memory_hears_of_new_prices() -> None:
    policy = built()
    restored = with_learned(policy.initial(), through_a_file(learned(policy.initial())))
    after = with_types(
        policy.deployments, speedup=policy.deployments.speedup, price=100 * policy.deployments.price
    )
    told = policy.informed(restored, policy.deployments, after)
    assert told.values.problem.deployments is after


def test_hashed_tables_come_back_as_large_as_they_had_grown() -> None:
    policy = built(replace(SPEC, infrastructure="A:10", max_replicas=20, operator_policy=Manager("ql-pds")))
    saved = learned(policy.initial())
    grown = {name: np.concatenate([array, array]) for name, array in saved.items() if "values.v." in name}
    assert grown
    restored = learned(with_learned(policy.initial(), {**saved, **grown}))
    for name, array in grown.items():
        assert np.array_equal(restored[name], array)


def test_a_memory_of_another_problem_or_policy_is_refused() -> None:
    saved = learned(built().initial())
    with pytest.raises(InputError, match="does not fit"):
        with_learned(built(replace(SPEC, operator_policy=Manager("ql"))).initial(), saved)
    with pytest.raises(InputError, match="other node types, replicas or levels"):
        with_learned(
            built(replace(SPEC, operator_policy=Manager("ql"), infrastructure="A:2")).initial(),
            learned(built(replace(SPEC, operator_policy=Manager("ql"))).initial()),
        )
