"""What `penstock.attach` leaves in its folder when it ends: the report, and the summary."""

import json
from dataclasses import asdict
from pathlib import Path

from penstock.files import write_whole
from penstock.live.attach import Attached
from penstock.live.fixed_replicas import would_have_done
from penstock.reports.live_run import page_of
from penstock.reports.live_summary import verdict


def write_report(attached: Attached, out: Path) -> None:
    """As `penstock run` does."""
    spec, summary = attached.controller, attached.summary()
    fixed = would_have_done(
        spec.application,
        attached.kept.latest,
        spec.node_types,
        attached.objective_s,
        is_all=attached.kept.has_all,
    )
    write_whole(out / "report.html", page_of(attached, summary, attached.name, fixed))
    told = {
        **summary.as_json(),
        "verdict": verdict(summary, attached.objective_s, fixed),
        "fixed": {name: asdict(one) for name, one in fixed.items()},
    }
    write_whole(out / "summary.json", json.dumps(told, indent=2, allow_nan=False))
