"""Plans from files: what is read, and that what is wrong is named."""

from pathlib import Path

import pytest

from penstock.domain.errors import InputError
from penstock.plan_file import read_problem
from penstock.planning.solve import Infeasible, Optimal, solve

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples" / "plan"
_APP = """
[[operators]]
name = "a"
service_rate = 100
rate = 50

[[operators]]
name = "b"
service_rate = 100
max_replicas = 2

[[streams]]
from = "a"
to = "b"

[goal]
max_response_time_s = 1
max_cost = 10
max_downtime_s = 10
weights = [0.5, 0.5, 0]
"""
_NETWORK = """
[[hosts]]
name = "here"
capacity = 1

[[hosts]]
name = "there"
capacity = 2

[[links]]
a = "here"
b = "there"
delay_s = 0.01
"""


def files(folder: Path, app: str = _APP, network: str = _NETWORK) -> tuple[Path, Path]:
    paths = folder / "app.toml", folder / "network.toml"
    for path, text in zip(paths, (app, network), strict=True):
        path.write_text(text)
    return paths


def test_a_small_plan_is_as_by_hand(tmp_path: Path) -> None:
    """Both operators on one host: 20 ms each and no delay; a second replica of b would cost 1 of 10 more."""
    answer = solve(read_problem(*files(tmp_path), None))
    assert isinstance(answer, Optimal)
    assert answer.plan == {"a": ("there",), "b": ("there",)}
    assert answer.value == pytest.approx(0.5 * 0.04 + 0.5 * 2 / 10)


def test_the_shipped_example_has_a_plan_and_weights_can_be_given() -> None:
    asked = read_problem(EXAMPLES / "top-routes.toml", EXAMPLES / "backbone.toml", None, weights=(0, 1, 0))
    answer = solve(asked)
    assert isinstance(answer, Optimal)
    assert asked.goal.cost == 1
    assert answer.comes_to.response_time_s <= asked.goal.max_response_time_s


@pytest.mark.parametrize(
    ("app", "network", "said"),
    [
        (_APP.replace("service_rate = 100", "servicerate = 100"), _NETWORK, "servicerate"),
        (_APP.replace('to = "b"', 'to = "c"'), _NETWORK, "unknown operator 'c'"),
        (_APP + '\n[[streams]]\nfrom = "b"\nto = "a"\n', _NETWORK, "cycle"),
        (_APP.replace("rate = 50", "rate = -1"), _NETWORK, "rate"),
        (_APP.replace("[0.5, 0.5, 0]", "[0.5, 0.6, 0]"), _NETWORK, "sum"),
        (_APP, _NETWORK.replace('b = "there"', 'b = "nowhere"'), "unknown host 'nowhere'"),
        (_APP, _NETWORK.split("[[links]]", maxsplit=1)[0], "no way from host"),
        (_APP, "[[hosts]", "no TOML"),
        (_APP.replace("[goal]", "[goal]\nmax_price = 1"), _NETWORK, "max_price"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, app: str, network: str, said: str) -> None:
    with pytest.raises(InputError, match=said.replace("[", r"\[")):
        read_problem(*files(tmp_path, app, network), None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("rate = 50", "rate = 150"), "operator 'a'"),
        (("max_response_time_s = 1", "max_response_time_s = 0.03"), "response time"),
        (("max_cost = 10", "max_cost = 1.5"), "cost"),
    ],
)
def test_a_bound_that_cannot_be_kept_is_named(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    answer = solve(read_problem(*files(tmp_path, _APP.replace(*change)), None))
    assert isinstance(answer, Infeasible)
    assert said in answer.why


def test_prices_of_links_add_up_along_the_way_and_others_cost_the_networks(tmp_path: Path) -> None:
    """a - b - c - d, where only a - b and b - c have prices of their own."""
    network = "link_price = 0.5\n"
    network += "".join(f'[[hosts]]\nname = "{name}"\ncapacity = 2\n' for name in "abcd")
    for ends, price in (("ab", "price = 0.1"), ("bc", "price = 0.02"), ("cd", "")):
        network += f'[[links]]\na = "{ends[0]}"\nb = "{ends[1]}"\ndelay_s = 0.01\n{price}\n'
    (tmp_path / "app.toml").write_text(_APP)
    (tmp_path / "net.toml").write_text(network)
    made = read_problem(tmp_path / "app.toml", tmp_path / "net.toml").network.price
    assert made[0].tolist() == pytest.approx([0.0, 0.1, 0.12, 0.12])
    assert made[3].tolist() == pytest.approx([0.12, 0.02, 0.5, 0.0])


def test_a_host_listed_twice_is_named(tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text(_APP)
    (tmp_path / "net.toml").write_text('[[hosts]]\nname = "a"\ncapacity = 2\n' * 2)
    with pytest.raises(InputError, match="host 'a' appears twice"):
        read_problem(tmp_path / "app.toml", tmp_path / "net.toml")
