"""`python -m rubbish --inputs 100000`: bad input, from seeds that follow each other."""

import argparse
import faulthandler
import gc
import os
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rubbish.gates import closed
from rubbish.judge import Answer, answer, in_own_process, tried

_MEMORY = 6 << 30  # bytes of address space, most of it libraries
_HANGS_S = 600.0  # by the clock: where others work, too, compiling a policy has taken more than 120


def main() -> int:
    wanted = argparse.ArgumentParser(prog="rubbish", description=__doc__)
    wanted.add_argument("--inputs", type=int, default=1000, help="how many")
    wanted.add_argument("--first", type=int, default=0, help="the first seed")
    wanted.add_argument("--seed", type=int, help="this one only, with all it said")
    wanted.add_argument("--real", type=int, default=0, help="compare so many with processes of their own")
    wanted.add_argument("--stop-after", type=int, default=50, help="failures")
    asked = wanted.parse_args()
    os.environ.pop("PENSTOCK_DATA", None)
    gc.set_threshold(20_000, 50, 100)  # as the command line does
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    with closed():
        if asked.seed is not None:
            return _shown(asked.seed)
        failed = _tried(range(asked.first, asked.first + asked.inputs), stop_after=asked.stop_after)
    if asked.real:
        failed += _compared(range(asked.first, asked.first + asked.inputs), asked.real)
    return int(failed > 0)


def _shown(seed: int) -> int:
    one = answer(seed)
    print(f"{one.given.kind}: penstock {' '.join(map(repr, one.given.words))}")
    print(f"status {one.status}, {one.took_s:.2f} s\n{one.out}\n{one.err}")
    print("\n".join(one.faults) or "as it should be")
    return int(bool(one.faults))


def _tried(seeds: range, *, stop_after: int) -> int:
    began_s, ended = time.monotonic(), Counter[str]()
    kinds, slowest, failed = Counter[str](), (0.0, -1), 0
    under_way = Path(tempfile.gettempdir()) / f"rubbish-{os.getpid()}.seed"  # where one hangs, it says which
    for seed in seeds:
        faulthandler.dump_traceback_later(_HANGS_S, exit=True)
        under_way.write_text(f"{seed}\n")
        one = tried(seed)
        ended["accepted" if one.status is None else f"status {one.status}"] += 1
        kinds[one.given.kind] += 1
        slowest = max(slowest, (one.took_s, seed))
        if one.faults:
            failed += 1
            report(seed, one)
            if failed >= stop_after:
                break
    faulthandler.cancel_dump_traceback_later()
    under_way.unlink(missing_ok=True)
    took_s, worked_s = time.monotonic() - began_s, time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{sum(ended.values()):,} inputs, {failed} failed; {took_s:.0f} s, {worked_s:.0f} s of them at work"
    )
    print(f"slowest {slowest[0]:.1f} s (seed {slowest[1]}), peak {peak:.0f} MB")
    for counted in (ended, kinds):
        print(", ".join(f"{name} {count:,}" for name, count in sorted(counted.items())))
    return failed


def report(seed: int, one: Answer) -> None:
    words = " ".join(word if len(word) < 80 else f"{word[:80]!r}..." for word in one.given.words)
    print(
        f"\nseed {seed} ({one.given.kind}): penstock {words!r}".encode("utf-8", "backslashreplace").decode()
    )
    for fault in one.faults:
        print(f"  {fault[-1500:]}".encode("utf-8", "backslashreplace").decode())
    print(f"  again: cd tests && python -m rubbish --seed {seed}", flush=True)


def _compared(seeds: range, count: int) -> int:
    """Whether processes of their own say the same as this one does."""
    different = 0
    for seed in seeds[:: max(len(seeds) // count, 1)]:
        with closed():
            here = answer(seed)
        if here.status is None:
            continue  # it would be carried out there
        status, out, err = in_own_process(seed)
        if (status, _same(err)) != (here.status, _same(here.err)) or bool(out) != bool(here.out):
            different += 1
            print(f"seed {seed}: {here.status}, {here.err!r} here; {status}, {err!r} in a process of its own")
    print(f"{different} of {count} were different in a process of their own")
    return different


def _same(text: str) -> str:
    """Without the name of the directory, which is another one each time."""
    return re.sub(r"rubbish-\w+", "rubbish", text)


sys.exit(main())
