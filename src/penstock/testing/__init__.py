"""Contracts to subclass, for our tests and for other people's policies and runtimes."""

import pytest

# A claim that fails shows what was compared, as it would in a test's own module.
pytest.register_assert_rewrite(
    "penstock.testing.application_policy", "penstock.testing.operator_policy", "penstock.testing.runtime"
)
