"""Good files to spoil, made once: a trace, journals, runs that can go on, problems to plan."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fake_sysfs import acpi_cpufreq
from penstock.apps.registry import application_entry
from penstock.control.build import build_controller
from penstock.control.journal import Header, Noted, Remembered, Ticked
from penstock.control.loop import plan
from penstock.control.orders import Override, Pause
from penstock.control.saved import as_plain, saved
from penstock.control.spec import ControllerSpec, Manager
from penstock.domain.deployment import Replicas
from penstock.domain.objective import Objective
from penstock.domain.observation import ApplicationObservation, OperatorObservation
from penstock.journal_file import JournalFile
from penstock.live.settings import controller_for
from penstock.reconfigure.method import Method

_ROOT = Path(__file__).parents[2]
_GOLDEN = ("bucket", "drs", "fixed", "q-learning", "threshold", "threshold-half")  # that replay in no time
Folder = Mapping[str, bytes]  # files by their path within it


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """All of it."""

    trace: bytes
    journals: tuple[bytes, ...]
    runs: tuple[tuple[tuple[str, ...], Folder], ...]  # with the options they were begun with
    plans: tuple[tuple[bytes, bytes, bytes | None], ...]  # application, network, what runs now
    spark_times: bytes
    sysfs: Folder


@cache
def material() -> Material:
    examples = {path.stem: path.read_bytes() for path in (_ROOT / "docs/examples/plan").glob("*.toml")}
    journals = [(_ROOT / f"tests/golden/journals/{name}.jsonl").read_bytes() for name in _GOLDEN]
    # One operator policy with tables to save, and one manager that needs a model.
    runs = tuple(
        (words, _run(below, above))
        for words, below, above in (
            (("--policy", "ql"), Manager("ql"), Manager("grant-all")),
            (("--application-policy", "drs-c"), Manager("adaptive"), Manager("drs-c")),
        )
    )
    names = ("executor comes, median of 5", "executor's first task, median of 5")
    return Material(
        trace="".join(f"{rate * 37 % 600 + rate / 4}\n" for rate in range(40)).encode(),
        journals=(*journals, *(folder["journal.jsonl"] for _, folder in runs)),
        runs=runs,
        plans=(
            (examples["top-routes"], examples["backbone"], None),
            (examples["cameras"], examples["edge-and-cloud"], examples["cameras-now"]),
        ),
        spark_times=json.dumps({"figures": [{"name": name, "value": 2.5} for name in names]}).encode(),
        sysfs=_sysfs(),
    )


def _run(below: Manager, above: Manager) -> Folder:
    """A run of twelve rounds that was interrupted: decided as live, over observations made up here."""
    entry = application_entry("paced")
    app = entry.on_spark(
        objective=Objective(response_time_s=entry.objective_s), max_replicas=3, protocol=Method("live")
    )
    spec = controller_for(app, policy=below, application_policy=above, joined=entry.joined)
    controller, memory = build_controller(spec)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "journal.jsonl"
        with JournalFile(path) as journal:
            journal.append(Header(controller=spec))
            journal.append(Remembered(memory=as_plain(saved(memory))))
            replicas = {one.name: 1 for one in spec.operators}
            for number in range(1, 13):
                orders = {4: (Override(operator=spec.operators[0].name, target=Replicas((2,))),)}
                given = orders.get(number, (Pause(until_s=9.0),) if number == 8 else ())
                seen = _seen(spec, 10.0 * number, 20.0 * number, replicas)
                decided, memory = plan(controller, memory, seen, given)
                journal.append(Ticked(seen=seen, plan=decided, orders=given))
                for one in decided.to_do.granted:
                    assert isinstance(one.target, Replicas)  # nothing migrates here
                    replicas[one.operator] = one.target.total
            journal.append(Noted(at_s=130.0, text="a note"))
        kept = as_plain(saved(memory))
        return {
            "journal.jsonl": path.read_bytes(),
            "work/owner.json": b"",
            "work/controller.json": json.dumps({"state": kept["state"]}).encode(),
            "work/learned.json": json.dumps({"arrays": kept["arrays"]}).encode(),
        }


def _seen(
    spec: ControllerSpec, at_s: float, rate: float, replicas: Mapping[str, int]
) -> ApplicationObservation:
    operators = tuple(
        OperatorObservation(
            operator=one.name,
            at_s=at_s,
            replicas=Replicas((replicas[one.name],)),
            arrival_rate=rate,
            response_time_s=0.02 * rate,
            utilisation=min(rate / 100 / replicas[one.name], 1.0),
        )
        for one in spec.operators
    )
    return ApplicationObservation(
        at_s=at_s, response_time_s=0.05 * rate, source_rate=rate, operators=operators
    )


def _sysfs() -> Folder:
    with tempfile.TemporaryDirectory() as place:
        root = acpi_cpufreq(Path(place), 2)
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
