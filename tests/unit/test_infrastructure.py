"""Node types, nodes and links: what they refuse, and that the message names the part and the value."""

from math import inf, nan

import pytest

from penstock.domain.errors import InputError
from penstock.domain.infrastructure import Infrastructure, Link, Node, NodeType

SMALL = NodeType(name="small", speedup=1.0, price=1.0)
LARGE = NodeType(name="large", speedup=2.0, price=3.0)


@pytest.mark.parametrize("speedup", [0.0, -1.0, nan, inf])
def test_a_node_type_without_a_positive_finite_speedup_is_refused(speedup: float) -> None:
    with pytest.raises(InputError) as caught:
        NodeType(name="vm", speedup=speedup, price=1.0)
    assert str(caught.value) == f"node type 'vm': speedup={speedup}; it must be positive"


@pytest.mark.parametrize("price", [-0.01, nan, inf])
def test_a_node_type_with_a_negative_or_unknown_price_is_refused(price: float) -> None:
    with pytest.raises(InputError) as caught:
        NodeType(name="vm", speedup=1.0, price=price)
    assert str(caught.value) == f"node type 'vm': price={price}; it cannot be negative"


def test_a_node_type_may_be_free() -> None:
    assert NodeType(name="own", speedup=0.05, price=0.0).price == 0.0


@pytest.mark.parametrize("slots", [0, -2])
def test_a_node_without_room_for_a_replica_is_refused(slots: int) -> None:
    with pytest.raises(InputError, match=f"node 'n1': slots={slots}"):
        Node(name="n1", node_type="small", slots=slots)


@pytest.mark.parametrize("delay_s", [-0.001, nan, inf])
def test_a_link_with_a_negative_or_unknown_delay_is_refused(delay_s: float) -> None:
    with pytest.raises(InputError) as caught:
        Link(a="n1", b="n2", delay_s=delay_s)
    assert str(caught.value) == f"link n1-n2: delay_s={delay_s}; it cannot be negative"


@pytest.mark.parametrize("bandwidth", [0.0, -1e6])
def test_a_link_without_bandwidth_is_refused(bandwidth: float) -> None:
    with pytest.raises(InputError) as caught:
        Link(a="n1", b="n2", delay_s=0.01, bandwidth_bytes_s=bandwidth)
    assert str(caught.value) == f"link n1-n2: bandwidth_bytes_s={bandwidth}; it must be positive"


def test_a_link_with_a_bandwidth_that_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="link n1-n2: bandwidth_bytes_s=nan"):
        Link(a="n1", b="n2", delay_s=0.01, bandwidth_bytes_s=nan)


def test_a_bandwidth_nobody_measured_is_none() -> None:
    assert Link(a="n1", b="n2", delay_s=0.0).bandwidth_bytes_s is None


def test_an_infrastructure_of_no_node_types_is_refused() -> None:
    with pytest.raises(InputError, match="infrastructure 'edge': no node types; at least one is needed"):
        Infrastructure(name="edge", node_types=())


def test_a_node_type_offered_twice_is_refused() -> None:
    with pytest.raises(InputError, match="infrastructure 'edge': node type 'small' appears twice"):
        Infrastructure(name="edge", node_types=(SMALL, LARGE, SMALL))


def test_two_nodes_of_one_name_are_refused() -> None:
    twins = tuple(Node(name="n1", node_type=kind, slots=2) for kind in ("small", "large"))
    with pytest.raises(InputError, match="infrastructure 'edge': node 'n1' appears twice"):
        Infrastructure(name="edge", node_types=(SMALL, LARGE), nodes=twins)


def test_a_node_of_a_type_not_on_offer_is_refused() -> None:
    with pytest.raises(InputError, match="node 'n1': unknown node type 'huge'"):
        Infrastructure(name="edge", node_types=(SMALL,), nodes=(Node(name="n1", node_type="huge", slots=1),))


@pytest.mark.parametrize(("a", "b"), [("n1", "n9"), ("n9", "n1")])
def test_a_link_to_a_node_that_is_not_there_is_refused(a: str, b: str) -> None:
    with pytest.raises(InputError, match=f"link {a}-{b}: unknown node 'n9'"):
        Infrastructure(
            name="edge",
            node_types=(SMALL,),
            nodes=(Node(name="n1", node_type="small", slots=1),),
            links=(Link(a=a, b=b, delay_s=0.01),),
        )


def test_a_link_to_a_node_type_is_not_a_link_to_a_node() -> None:
    with pytest.raises(InputError, match="link n1-small: unknown node 'small'"):
        Infrastructure(
            name="edge",
            node_types=(SMALL,),
            nodes=(Node(name="n1", node_type="small", slots=1),),
            links=(Link(a="n1", b="small", delay_s=0.01),),
        )


def test_a_cloud_needs_types_only() -> None:
    cloud = Infrastructure(name="cloud", node_types=(SMALL, LARGE))
    assert cloud.nodes == ()
    assert cloud.links == ()
