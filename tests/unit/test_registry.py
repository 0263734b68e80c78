"""The registry: one entry beside each policy's code, read by everything else."""

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest

import penstock
from penstock.control.spec import Manager
from penstock.domain.errors import InputError
from penstock.policy.knowledge import OperatorKnowledge
from penstock.policy.parameters import Param, parameters_of
from penstock.policy.registry import Level, entries, entry, known_as, load, operator_policy
from penstock.simulation.one_operator import operator_of
from penstock.simulation.play import run
from penstock.simulation.spec import OneOperator

RATES = np.random.default_rng(1).uniform(50, 500, 300)


FIXED = OneOperator(operator_policy=Manager("fixed"))


def known_operator(spec: OneOperator = FIXED) -> OperatorKnowledge:
    return operator_of(spec, RATES, RATES, seed=1)


def test_a_parameter_is_its_annotated_field_type_default_help_and_bounds() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Steps:
        size: Annotated[float, Param("how far", above=0, at_most=1)] = 0.5

    @dataclass(frozen=True, kw_only=True)
    class Policy:
        told: int
        patience: Annotated[int, Param("how long", at_least=1)] = 10
        eager: Annotated[bool, Param("whether")] = False
        steps: Steps = Steps(size=0.25)

    found = {one.name: one for one in parameters_of(Policy)}
    assert list(found) == ["patience", "eager", "size"]
    assert (found["patience"].kind, found["patience"].default, found["patience"].help) == (
        int,
        10,
        "how long",
    )
    assert found["patience"].bounds == "at least 1"
    assert (found["size"].default, found["size"].within) == (0.25, "steps")
    assert found["eager"].parsed("yes") is True
    assert found["size"].parsed(" 1 ") == 1.0
    for text in ("0", "-1", "1.5", "nan", "inf", "much"):
        with pytest.raises(InputError):
            found["size"].parsed(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("treshold=.6", "policy 'threshold-c': no parameter 'treshold'; did you mean 'threshold'?"),
        ("threshold=1.5", "policy 'threshold-c': threshold=1.5: it must be above 0 and below 1"),
        ("threshold=high", "policy 'threshold-c': threshold=high: a number is expected"),
    ],
)
def test_a_wrong_parameter_is_told_in_one_line(text: str, said: str) -> None:
    name, _, value = text.partition("=")
    with pytest.raises(InputError) as told:
        entry(Level.OPERATOR, "threshold-c").parsed(name, value)
    assert str(told.value) == said


def test_an_unknown_policy_is_told_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match="policy 'ql-pds\\+': unknown; did you mean 'ql-pds-plus'"):
        entry(Level.OPERATOR, "ql-pds+")
    with pytest.raises(InputError, match="application policy 'token-buckets': unknown"):
        entry(Level.APPLICATION, "token-buckets")


def test_a_field_named_after_what_is_known_is_filled_with_it() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Told:
        node_types: object
        max_replicas: int
        service_time_s: float
        max_response_time_s: float
        patience: Annotated[int, Param("how long", at_least=1)] = 10

        def decide(self) -> None: ...

    spec = OneOperator(operator_policy=Manager("fixed"), max_replicas=7, service_rate=100.0, slo_s=0.2)
    made = known_as(Level.OPERATOR, Told).build(known_operator(spec), {"patience": 3})
    assert (made.max_replicas, made.service_time_s, made.max_response_time_s, made.patience) == (
        7,
        0.01,
        0.2,
        3,
    )


def test_a_field_nobody_can_fill_is_an_error_that_names_it() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Asking:
        weather: str

        def decide(self) -> None: ...

    with pytest.raises(InputError, match="nothing known fills its field 'weather'"):
        known_as(Level.OPERATOR, Asking).build(known_operator(), {})


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(InputError, match="QLearning already has that name"):

        @operator_policy("ql")
        class Another: ...


def test_as_published_a_policy_has_the_published_default_unless_it_is_set() -> None:
    threshold = entry(Level.OPERATOR, "threshold-c")
    published, paper = known_operator(replace(FIXED, as_published=True)), known_operator()
    assert threshold.build(paper, {}).threshold == 0.7
    assert threshold.build(published, {}).threshold == 0.75
    assert threshold.build(published, {"threshold": 0.6}).threshold == 0.6


def test_a_parameter_reaches_the_simulation() -> None:
    usual = run(OneOperator(operator_policy=Manager("threshold-c")), RATES)
    eager = run(OneOperator(operator_policy=Manager("threshold-c", {"threshold": 0.3})), RATES)
    assert eager.mean_replicas > usual.mean_replicas
    slow = run(OneOperator(operator_policy=Manager("ql", {"alpha_floor": 1.0, "epsilon_start": 0.0})), RATES)
    assert slow.avg_cost != run(OneOperator(operator_policy=Manager("ql")), RATES).avg_cost


def test_a_module_that_is_not_there_or_breaks_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "breaks_here.py").write_text("1 / 0\n")
    (tmp_path / "empty_here.py").write_text("class Nothing: ...\n")
    for name, said in {
        "not_here:Policy": "no module 'not_here'",
        "breaks_here:Policy": "importing 'breaks_here' failed: ZeroDivisionError: division by zero",
        "empty_here:Policy": "module 'empty_here' has no class 'Policy'",
        "empty_here:Nothing": "Nothing has no method 'decide'",
    }.items():
        with pytest.raises(InputError) as told:
            load(Level.OPERATOR, name)
        assert said in str(told.value)
        assert "\n" not in str(told.value)


def test_a_name_in_a_file_never_imports_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "never_imported.py").write_text("raise SystemExit('imported')\n")
    with pytest.raises(InputError, match="not loaded; code is imported only"):
        entry(Level.OPERATOR, "never_imported:Policy")
    assert "never_imported" not in sys.modules


def test_policies_of_installed_packages_are_found_by_their_entry_point(tmp_path: Path) -> None:
    """A package with an entry point of group penstock.policies, as pip would lay it out."""
    (tmp_path / "guest.py").write_text(
        "class Calm:\n"
        "    def initial(self): return None\n"
        "    def decide(self, memory, seen, rng):\n"
        "        from penstock import Hold\n"
        "        return Hold('calm'), memory\n"
    )
    info = tmp_path / "guest-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guest\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[penstock.policies]\ncalm = guest:Calm\nbroken = guest:Nobody\n")
    program = (
        "from penstock.policy.registry import Level, entries, entry\n"
        "print('calm' in entries(Level.OPERATOR), 'broken' in entries(Level.OPERATOR))\n"
        "import penstock\n"
        "print(penstock.simulate([100.0] * 5, 'calm').reconfigurations_pct)\n"
        "from guest import Calm\n"
        "print(penstock.simulate([100.0] * 5, Calm).spec.operator_policy.name)\n"
        "try:\n"
        "    penstock.simulate([100.0] * 5, 'broken')\n"
        "except penstock.InputError as problem:\n"
        "    print(problem)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        check=True,
    )
    found, reconfigurations, by_class, problem = done.stdout.splitlines()
    assert (found, reconfigurations) == ("True False", "0.0")
    assert by_class == "guest:Calm"  # which any process can load
    assert problem.startswith("policy 'broken': importing 'guest:Nobody' failed: AttributeError")


def test_programs_may_name_policies_of_every_level_and_say_what_they_learn_from() -> None:
    managed = penstock.simulate(
        RATES,
        "threshold-c",
        application="pipeline",
        application_policy=penstock.Manager("token-bucket", {"capacity": 2}),
        hosts="3:4:5",
        node_policy="sender-initiated",
        slo_s=0.3,
    )
    assert managed.migrations is not None
    with pytest.raises(InputError, match="'seed' does not apply"):
        penstock.compare(RATES, ["ds2"], seed=7)
    found = penstock.compare(RATES, ["ds2", "ds2", "vi"], seeds=2, training=RATES[:50], threads=1)
    assert {name: len(results) for name, results in found.items()} == {"ds2": 1, "vi": 1}
    with pytest.raises(InputError, match="give application, too"):
        penstock.simulate(RATES, "ds2", application_policy="token-bucket")


def test_the_front_door_opens_what_it_lists() -> None:
    functions = {"attach", "simulate", "compare", "policies", "__version__"}
    assert set(penstock.__all__) == set(penstock._HOMES) | functions
    for name in penstock.__all__:
        assert getattr(penstock, name) is not None, name


def test_every_entry_says_what_it_is_and_what_its_parameters_are() -> None:
    for level in Level:
        for one in entries(level).values():
            if not one.policy.__module__.startswith("penstock."):
                continue  # entered by another test
            assert one.title.endswith("."), one.name
            for parameter in one.parameters.values():
                assert parameter.help, f"{one.name}.{parameter.name}"
