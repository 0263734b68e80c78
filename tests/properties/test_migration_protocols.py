"""Keys that move while tuples flow: R1 to R4 of De Matteis 2017 (sec. 4.2), by protocol.

R1 gracefulness: nothing lost, doubled or out of order, states as of one sequential replica. R2
fluidness: the splitter never waits for a migration. R3 non-intrusiveness: replicas that exchange
no keys do what they always do. R4 fluency: keys whose state is there go on. MP has them all,
R-BLK all but R4, S-BLK all but R2 (sec. 5.2.2). Copies of the protocols that were broken on
purpose must each fail the property they break.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from penstock.compiled import Floats, Ints
from penstock.runtimes.sim import elastic
from penstock.runtimes.sim.elastic.costs import Costs
from penstock.runtimes.sim.elastic.operator import ElasticOperator
from penstock.runtimes.sim.elastic.protocol import Protocol

INTERLEAVINGS = 10_000
LONG_AFTER_S = 1e3
_MASK = 2**64 - 1


class Stream(NamedTuple):
    arrivals_s: Floats
    keys: Ints
    ticks: Floats


class Change(NamedTuple):
    at_s: float
    table: Ints
    protocol: Protocol
    frequency_ghz: float | None = None


class Case(NamedTuple):
    keys: int
    replicas: int
    table: Ints
    capacity: int
    slide: int
    costs: Costs
    stream: Stream
    changes: Sequence[Change]


def random_case(rng: np.random.Generator, *, tuples: int = 60) -> Case:
    """Everything may happen at the same time: the stream takes as long as its changes and their moves."""
    keys, replicas = int(rng.integers(1, 8)), int(rng.integers(1, 6))
    slow = float(rng.choice([0.0, 0.1, 3.0]))
    costs = Costs(
        split_s=float(rng.choice([0.0, 0.01, 0.1])),
        merge_s=0.01,
        insert_ticks=1e7,
        message_s=float(rng.choice([0.0, 0.05])),
        save_s=slow * float(rng.random()),
        acquire_s=slow * float(rng.random()),
        transfer_s=float(rng.choice([0.0, 0.5])),
        dequeue_s=float(rng.choice([0.0, 0.2])),
    )
    stream = Stream(
        np.sort(rng.random(tuples)) * 20,
        rng.integers(0, keys, tuples),
        rng.integers(0, 10**9, tuples).astype(np.float64),
    )
    times = np.sort(rng.random(int(rng.integers(1, 6)))) * 20
    changes = [
        Change(
            float(at_s),
            rng.integers(0, rng.integers(1, replicas + 1), keys),
            Protocol(int(rng.integers(0, 3))),
            float(rng.choice([1.2, 2.0])) if rng.random() < 0.3 else None,
        )
        for at_s in times
    ]
    return Case(
        keys,
        replicas,
        rng.integers(0, replicas, keys),
        int(rng.choice([1, 2, 5, 100])),
        int(rng.choice([1, 3])),
        costs,
        stream,
        changes,
    )


def played(case: Case, make: Any = ElasticOperator) -> Any:
    """The operator long after the last tuple came."""
    operator = make(
        keys=case.keys,
        replicas=case.replicas,
        max_replicas=case.replicas,
        frequency_ghz=2.0,
        table=case.table,
        queue_capacity=case.capacity,
        costs=case.costs,
        slide=case.slide,
        tracing=True,
    )
    for change in case.changes:
        operator.reconfigure(
            change.at_s,
            table=change.table,
            protocol=change.protocol,
            frequency_ghz=change.frequency_ghz,
        )
    # In two steps, as a control loop would.
    half = case.stream.keys.size // 2
    middle_s = float(case.stream.arrivals_s[half])
    early = slice(None, int(np.searchsorted(case.stream.arrivals_s, middle_s, side="right")))
    late = slice(early.stop, None)
    operator.advance(*(part[early] for part in case.stream), middle_s + 1e-9)
    operator.advance(*(part[late] for part in case.stream), LONG_AFTER_S)
    return operator


def is_graceful(case: Case, operator: Any) -> bool:
    """R1."""
    trace = operator.trace
    by_key = np.argsort(trace["key"], kind="stable")
    in_order = np.argsort(case.stream.keys, kind="stable")
    expected = [
        number for key in range(case.keys) for number in range(1, int((case.stream.keys == key).sum()) + 1)
    ]
    if trace["key"][by_key].tolist() != case.stream.keys[in_order].tolist():
        return False  # lost or doubled
    if trace["sequence"][by_key].tolist() != expected or (np.diff(trace["done_s"]) < 0).any():
        return False
    processed, digests = operator.states
    sequence, digest = [0] * case.keys, [0] * case.keys
    for key, ticks in zip(case.stream.keys.tolist(), case.stream.ticks.tolist(), strict=True):
        sequence[key] += 1
        triggers = sequence[key] % case.slide == 0
        work = int(ticks if triggers else case.costs.insert_ticks)
        digest[key] = (digest[key] * 6364136223846793005 + (sequence[key] ^ work)) & _MASK
    return processed.tolist() == sequence and [one & _MASK for one in digests.tolist()] == digest


def two_of_three(seed: int, protocol: Protocol) -> Case:
    """Replicas 0 and 1 hand keys to each other, 2 has no part in it; queues never fill."""
    rng = np.random.default_rng(seed)
    tuples, keys = 300, 9
    before = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    after = np.array([0, 1, 1, 1, 1, 0, 2, 2, 2])
    costs = Costs(split_s=1e-3, merge_s=0.0, message_s=0.0, save_s=2.0, acquire_s=0.0, dequeue_s=0.05)
    stream = Stream(
        np.sort(rng.random(tuples)) * 20, rng.integers(0, keys, tuples), rng.exponential(2e8, tuples)
    )
    return Case(keys, 3, before, 1000, 1, costs, stream, [Change(8.0, after, protocol)])


def is_fluid(seed: int, protocol: Protocol, make: Any = ElasticOperator) -> bool:
    """R2: the splitter hands on every tuple when it would have done so without a migration."""
    case = two_of_three(seed, protocol)
    moving, still = played(case, make).routed, played(case._replace(changes=[]), make).routed
    return bool(np.array_equal(moving["at_s"], still["at_s"]))


def is_unintrusive(seed: int, protocol: Protocol, make: Any = ElasticOperator) -> bool:
    """R3: a replica without a part in it works off what the splitter sends, one after the other."""
    case = two_of_three(seed, protocol)
    operator = played(case, make)
    sent = operator.routed[operator.routed["replica"] == 2]
    done = operator.trace[operator.trace["replica"] == 2]
    numbers = np.argsort(np.argsort(case.stream.keys, kind="stable"), kind="stable")
    before = np.searchsorted(np.sort(case.stream.keys), np.arange(case.keys))
    ticks = {}
    for number, key, work in zip(numbers, case.stream.keys, case.stream.ticks, strict=True):
        ticks[int(key), int(number - before[key]) + 1] = work
    free_s = 0.0
    for routed, one in zip(sent, done, strict=True):
        free_s = max(free_s, routed["at_s"]) + ticks[int(one["key"]), int(one["sequence"])] / 2e9
        if (routed["key"], routed["sequence"]) != (one["key"], one["sequence"]):
            return False
        if not np.isclose(one["done_s"], free_s, rtol=0, atol=1e-9):
            return False
    return True


def is_fluent(seed: int, protocol: Protocol, make: Any = ElasticOperator) -> bool:
    """R4: while replica 1 waits for a key, it does with its own what it would have done anyway."""
    case = two_of_three(seed, protocol)
    # The only key on its way takes 2 s to be saved, and replica 1 gives none itself.
    change = Change(8.0, np.array([0, 0, 1, 1, 1, 1, 2, 2, 2]), protocol)
    case = case._replace(changes=[change])
    moving, still = played(case, make).trace, played(case._replace(changes=[]), make).trace

    def own(trace: Any) -> list[tuple[int, int, float]]:
        mine = (trace["replica"] == 1) & (trace["key"] != 2) & (trace["done_s"] < 10.0)
        return [(int(one["key"]), int(one["sequence"]), float(one["done_s"])) for one in trace[mine]]

    return own(moving) == own(still)


PROPERTIES: dict[str, Callable[..., bool]] = {"R2": is_fluid, "R3": is_unintrusive, "R4": is_fluent}
MISSED = {Protocol.MP: "", Protocol.R_BLK: "R4", Protocol.S_BLK: "R2"}  # sec. 5.2.2


@pytest.mark.parametrize("protocol", list(Protocol))
def test_nothing_is_lost_doubled_or_out_of_order_in_ten_thousand_interleavings(protocol: Protocol) -> None:
    """R1, for each protocol and for all of them on top of each other."""
    moved = 0
    for seed in range(INTERLEAVINGS // 3 + 1):
        rng = np.random.default_rng([seed, protocol])
        case = random_case(rng)
        if seed % 2:
            case = case._replace(changes=[one._replace(protocol=protocol) for one in case.changes])
        operator = played(case)
        assert is_graceful(case, operator), f"seed {seed}: {case}"
        moved += sum(int((one.table != case.table).sum()) for one in case.changes)
    assert moved > INTERLEAVINGS


@pytest.mark.parametrize("name", list(PROPERTIES))
@pytest.mark.parametrize("protocol", list(Protocol))
def test_a_protocol_has_the_properties_the_paper_says_and_no_others(protocol: Protocol, name: str) -> None:
    held = [PROPERTIES[name](seed, protocol) for seed in range(40)]
    if MISSED[protocol] == name:
        assert not any(held)
    else:
        assert all(held)


class Broken(NamedTuple):
    """A protocol with one line changed, and the property that is gone with it."""

    breaks: str
    file: str
    line: str
    instead: str


BROKEN = {
    "no pending buffer": Broken("R1", "replica.py", "    if awaited == NONE:", "    if True:"),
    "pending tuples forgotten": Broken("R1", "replica.py", "    if following != NONE:", "    if False:"),
    "newest pending tuple first": Broken(
        "R1",
        "replica.py",
        "        m.kept[coming.kept_tail].next = kept",
        "        m.kept[kept].next = coming.kept_head; coming.kept_head = kept",
    ),
    "state not taken along": Broken(
        "R1",
        "replica.py",
        "    m.state[move.key, index].processed = m.store[move.key].processed",
        "    pass",
    ),
    "overlapping moves forgotten": Broken(
        "R1", "replica.py", "    m.move[earlier].then_out = move", "    pass"
    ),
    "a splitter that waits": Broken(
        "R2",
        "splitter.py",
        "    splitter.free_s = now + sent * m.message_s",
        "    splitter.free_s = now + 2.0",
    ),
    "everybody is slowed down": Broken(
        "R3",
        "replica.py",
        "    m.next_s[index] = now + replica.ticks",
        "    m.next_s[index] = now + 0.01 * (m.clock[0].moves > 0) + replica.ticks",
    ),
    "replicas that wait": Broken("R4", "replica.py", "protocol == Protocol.R_BLK", "protocol >= Protocol.MP"),
}
_COPIES = count()


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Broken | None], Any]]:
    """The operator from a copy of its sources, in plain Python."""
    monkeypatch.syspath_prepend(str(tmp_path))
    made = []

    def copy(broken: Broken | None) -> Any:
        name = f"elastic_copy_{next(_COPIES)}"
        made.append(name)
        package = tmp_path / name
        package.mkdir()
        for path in Path(elastic.__file__).parent.glob("*.py"):
            text = path.read_text()
            if broken is not None and path.name == broken.file:
                assert broken.line in text, f"{broken.file} no longer says {broken.line.strip()!r}"
                text = text.replace(broken.line, broken.instead)
            text = text.replace("penstock.runtimes.sim.elastic", name).replace("@compiled\n", "")
            (package / path.name).write_text(text)
        return import_module(f"{name}.operator").ElasticOperator

    yield copy
    for name in list(sys.modules):
        if name.partition(".")[0] in made:
            del sys.modules[name]


def some_case_is_not_graceful(make: Any) -> bool:
    for seed in range(60):
        case = random_case(np.random.default_rng([seed, 99]))
        case = case._replace(changes=[one._replace(protocol=Protocol.MP) for one in case.changes])
        with np.errstate(over="ignore"):
            operator = played(case, make)
        if not is_graceful(case, operator):
            return True
    return False


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_copy_fails_the_property_it_breaks(name: str, copied: Callable[..., Any]) -> None:
    broken = BROKEN[name]
    make = copied(broken)
    if broken.breaks == "R1":
        assert some_case_is_not_graceful(make)
    else:
        with np.errstate(over="ignore"):
            assert not all(PROPERTIES[broken.breaks](seed, Protocol.MP, make) for seed in range(3))


def test_an_unbroken_copy_fails_nothing(copied: Callable[..., Any]) -> None:
    make = copied(None)
    assert not some_case_is_not_graceful(make)
    with np.errstate(over="ignore"):
        assert all(holds(0, Protocol.MP, make) for holds in PROPERTIES.values())
