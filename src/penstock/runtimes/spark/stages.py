"""The stages Spark cuts a plan into, as it explains them: one that has no tap runs anywhere, unseen.

MapInArrow penstock_tap(...)          a stage bound by its tap
+- HashAggregate(...)
   +- Exchange hashpartitioning(...)  here the next one ends
      +- ...
"""

import re
from typing import Any

_NODE = re.compile(r"^(?P<branches>[ :+-]*)(?:\*\(\d+\) |!)?(?P<what>[A-Za-z].*)$")
_INDENT = 3  # characters for every level of the tree
_TAP = "MapInArrow penstock_tap("
_SHUFFLE, _BROADCAST = "Exchange ", "BroadcastExchange "


def unseen_stage(plan: str) -> str | None:
    """What stands first in a stage without a tap; None where every stage has one.

    What is broadcast is read whole on the side, once for all: no part of the stream.
    """
    above: list[int] = []  # stages of the nodes on the way from the root
    heads: list[str] = []  # of every stage, its uppermost node
    tapped: list[bool] = []

    def new_stage(head: str, seen: bool) -> int:
        heads.append(head)
        tapped.append(seen)
        return len(heads) - 1

    for line in plan.splitlines():
        found = _NODE.match(line)
        if found is None:
            continue
        depth, what = len(found["branches"]) // _INDENT, found["what"]
        del above[depth:]
        stage = above[-1] if above else new_stage(what, False)
        if what.startswith(_TAP):
            tapped[stage] = True
        if what.startswith(_SHUFFLE):
            stage = new_stage(what, False)
        elif what.startswith(_BROADCAST):
            stage = new_stage(what, True)
        above.append(stage)
    return next((head for head, seen in zip(heads, tapped, strict=True) if not seen), None)


def plan_of(frame: Any) -> str:
    """How Spark would run a frame, a stream's or not."""
    jvm = frame.sparkSession._jvm
    explained = jvm.org.apache.spark.sql.api.python.PythonSQLUtils.explainString(
        frame._jdf.queryExecution(), "simple"
    )
    return str(explained)
