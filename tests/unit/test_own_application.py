"""`penstock run module:app` with an application of one's own."""

import pytest

from penstock import App, Objective
from penstock.apps.own import own_entry
from penstock.apps.registry import load_application
from penstock.domain.errors import InputError
from penstock.reconfigure.method import Method

app = App("mine", objective=Objective(response_time_s=4))
app.sink("out", app.operator("same", lambda frame: frame, app.source("in", reader=lambda spark: spark)))
unfed = App("unfed", objective=Objective(response_time_s=4))
unfed.operator("same", lambda frame: frame, unfed.source("in", schema="v long"))
nothing = 3


def test_an_app_in_a_module_is_an_application() -> None:
    entry = load_application(f"{__name__}:app")
    assert entry.own
    assert entry.objective_s == 4
    tighter = entry.on_spark(objective=Objective(response_time_s=1), max_replicas=3, protocol=Method.LIVE)
    assert tighter.objective.response_time_s == 1
    assert app.objective.response_time_s == 4


def test_a_source_that_nothing_feeds_is_named() -> None:
    with pytest.raises(InputError, match="source 'in' has no reader"):
        own_entry("m:unfed", unfed)


def test_anything_else_in_a_module_is_no_application() -> None:
    with pytest.raises(InputError, match="has no App or AppEntry 'nothing'"):
        load_application(f"{__name__}:nothing")
