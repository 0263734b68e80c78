"""One bad input from a seed: the words of a command, and the files it finds."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import typer

from penstock.cli.app import app
from rubbish import odd, spoiled
from rubbish.material import Folder, material

# What every command starts from: it would be accepted, and soon done. Options come last.
_BASES: tuple[tuple[str, ...], ...] = (
    ("simulate", "--trace", "taxi.txt", "--policy", "threshold-c"),
    ("simulate", "--trace", "taxi.txt", "--policy", "fixed", "--history", "h.csv", "--json"),
    ("simulate", "--slots", "30", "--policy", "ds2", "--set", "headroom=.1"),
    ("simulate", "--trace", "taxi.txt", "--policy", "ql", "--set", "gamma=.9", "--update", "equation"),
    (
        "simulate",
        "--trace",
        "taxi.txt",
        "--policy",
        "ql-pds",
        "--infrastructure",
        "B:3",
        "--rate-change",
        "2@0.5",
    ),
    ("simulate", "--trace", "taxi.txt", "--application", "diamond", "--policy", "threshold-c"),
    (
        *("simulate", "--trace", "taxi.txt", "--application", "pipeline", "--policy", "threshold-c"),
        *("--application-policy", "token-bucket", "--hosts", "4:8:5", "--pause-s", "10"),
    ),
    ("simulate", "--trace", "mine.txt", "--service-rate", "100", "--policy", "rule-based", "--as-published"),
    ("compare", "--trace", "taxi.txt", "--policies", "fixed,threshold-c", "--seeds", "1", "--threads", "1"),
    ("compare", "--trace", "taxi.txt", "--policies", "ds2", "--out", "page.html", "--threads", "1", "--json"),
    ("compare", "--runtime", "spark", "--policies", "fixed", "--minutes", "1", "--out", "side"),
    ("sweep", "--trace", "taxi.txt", "--policies", "ql,fixed", "--seeds", "2", "--out", "table"),
    ("sweep", "--trace", "mine.txt", "--policies", "ds2", "--service-rate", "9", "--out", "new/table"),
    ("trace", "synth", "--out", "made.txt", "--slots", "50"),
    ("trace", "synth", "--out", "made.txt", "--slots", "9", "--like", "taxi", "--mean-rate", "20", "--json"),
    ("trace", "synth", "--out", "made", "--slots", "9", "--events", "tweets", "--rows", "10"),
    ("trace", "describe", "taxi.txt"),
    ("trace", "describe", "taxi.txt", "--against", "mine.txt", "--page", "page.html", "--levels", "9"),
    ("trace", "build", "mine.txt", "--kind", "debs2015", "--out", "built.txt", "--slot-s", "60"),
    ("plan", "--app", "app.toml", "--network", "network.toml", "--time-limit", "1"),
    (
        "plan",
        "--app",
        "app.toml",
        "--network",
        "network.toml",
        "--write-lp",
        "p.lp",
        "--objective",
        ".3,.3,.4",
    ),
    ("policies",),
    ("policies", "ql-pds", "--json"),
    ("reproduce", "taas-tables", "--data", "folder", "--out", "out.html"),
    ("reproduce", "edrp-tables", "--out", "out.html"),
    ("run", "paced", "--policy", "fixed", "--minutes", "1", "--out", "ran"),
    ("run", "lookups", "--policy", "threshold-c", "--rates", "mine.txt", "--slot", "1", "--out", "ran"),
    ("run", "top-routes", "--policy", "ds2", "--input", "mine.txt", "--until-done", "--out", "ran"),
    ("run", "diamond", "--application-policy", "drs-c", "--nodes", "a:1:1,b:2:3", "--out", "ran"),
    ("order", "pause", "going", "--minutes", "5"),
    ("order", "resume", "going"),
    ("order", "override", "going", "heavy", "2"),
    ("order", "lift", "going", "heavy"),
    ("replay", "going"),
    ("replay", "going/journal.jsonl", "--json"),
    ("bench", "simulator", "--threads", "1"),
    ("chaos", "--seeds", "1", "--out", "trials", "--only", "clock"),
    ("chaos", "--seed", "3", "--json"),
    ("power", "--seconds", "0.1"),
    ("power", "--ghz", "1.5", "--for", "0.1", "--seconds", "0.1"),
    ("power", "--restore"),
    ("order",),
    ("trace",),
    (),
)
# A real frequency is never held, whatever else is said.
_NOT_THIS_MACHINE = ("--sys", "sys", "--state", "state")


@dataclass(frozen=True, slots=True)
class Given:
    """A command line; its files are in the current directory already."""

    kind: str
    words: tuple[str, ...]


def given(seed: int) -> Given:
    """What this seed stands for, with its files written into the current directory, which is empty."""
    rng = Random(seed)
    kinds = list(_KINDS)
    kind = rng.choices(kinds, [_KINDS[one][0] for one in kinds])[0]
    words = [_within(word) for word in _KINDS[kind][1](rng)]
    if "power" in words:
        words += _NOT_THIS_MACHINE
    return Given(kind, tuple(words))


def _within(word: str) -> str:
    """Nothing outside the current directory is named, but for devices and what cannot be written."""
    name = word.partition("=")[2] if word.startswith("--") and "=" in word else word
    if (name.startswith("/") and name not in odd.PATHS) or ".." in Path(name.replace("\0", "")).parts:
        return word.replace("/", "_").replace("..", "_")
    return word.replace("\0", "0")  # the system would not take it


# Arguments -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Option:
    name: str
    kind: str  # int, float, path, text or flag


_KIND_OF: Mapping[object, str] = {int: "int", float: "float", Path: "path", list[Path]: "path", bool: "flag"}


@cache
def _options(path: tuple[str, ...]) -> tuple[_Option, ...]:
    """The options of a command, from the command itself: new ones are tried at once."""
    command: object = typer.main.get_command(app)
    for word in path:
        command = getattr(command, "commands", {}).get(word, command)
    found = [
        (name, one.type_descriptor.annotation) for one in getattr(command, "params", ()) for name in one.opts
    ]
    return tuple(
        _Option(name, _KIND_OF.get(annotation, "text"))
        for name, annotation in found
        if name.startswith("--") and name != "--help"
    )


def _arguments(rng: Random) -> list[str]:
    base = rng.choice(_BASES)
    words = list(base)
    command = 2 if base[:1] in (("trace",), ("order",)) else min(len(base), 1)
    options = _options(base[:command])
    for _ in range(rng.choices((1, 2, 3), (6, 3, 1))[0]):
        at = rng.randrange(command, len(words)) if len(words) > command else None
        match rng.randrange(12):
            case 0 | 1 | 2 | 3 | 4 if options:
                _set(rng, words, rng.choice(options))
            case 5 | 6 if at is not None:
                named = words[at - 1] if at and words[at - 1].startswith("--") else ""
                kind = next((one.kind for one in options if one.name == named), "path")
                words[at] = odd.value(rng, kind)
            case 7 if at is not None:
                del words[at]
            case 8 if at is not None:
                words[at] = odd.misspelt(rng, words[at])
            case 9:
                words.insert(rng.randint(0, len(words)), odd.value(rng, rng.choice(("text", "path", "int"))))
            case 10 if words:
                words.insert(rng.randint(0, len(words)), rng.choice(words))
            case _ if words:
                one = rng.randrange(len(words))
                words[one] = odd.misspelt(rng, words[one])
    _scene(rng, words)
    return words


def _set(rng: Random, words: list[str], option: _Option) -> None:
    """Give an option an odd value; in its place where it is given, and by an equals sign now and then."""
    if option.kind == "flag":
        words.append(option.name)
        return
    new = _setting(rng) if option.name == "--set" else odd.value(rng, option.kind)
    if option.name in words[:-1] and rng.random() < 0.9:
        words[words.index(option.name) + 1] = new
    elif rng.random() < 0.2:
        words.append(f"{option.name}={new}")
    else:
        words += [option.name, new]


def _setting(rng: Random) -> str:
    """A parameter of a policy; it may be one of another's."""
    from penstock.policy.registry import Level, entries

    level = rng.choices(tuple(Level), (8, 2, 1))[0]
    entry = rng.choice(list(entries(level).values()))
    parameter = rng.choice([*entry.parameters.values(), None])
    name = odd.value(rng, "text") if parameter is None else parameter.name
    kind = "text" if parameter is None else {int: "int", float: "float"}.get(parameter.kind, "text")
    prefix = rng.choice(("", "", f"{entry.name}.", "nobody."))
    return f"{prefix}{name}={odd.value(rng, kind)}"


def _parameters(rng: Random) -> list[str]:
    """Policies with a parameter of their own set to something."""
    from penstock.policy.registry import Level, entries

    known = entries(Level.OPERATOR)
    # Networks and plans take seconds to compile and to run, whatever they are given.
    entry = known[rng.choice([name for name in known if not name.startswith(("dql", "adaptive", "mpc"))])]
    words = ["simulate", "--trace", "taxi.txt", "--policy", entry.name]
    for parameter in rng.sample(
        list(entry.parameters.values()), min(len(entry.parameters), rng.choice((1, 1, 2)))
    ):
        kind = {int: "int", float: "float"}.get(parameter.kind, "text")
        words += ["--set", f"{parameter.name}={odd.value(rng, kind)}"]
    _scene(rng, words)
    return words


# Files -----------------------------------------------------------------------------------------------------


def _write(path: str, content: bytes) -> None:
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)


def _scene(rng: Random, words: list[str]) -> None:
    """What arguments may name: good files, and things that are no files. What none names is not made."""
    good = material()
    named = " ".join(words)
    application, network, _ = rng.choice(good.plans)
    plain: dict[str, bytes] = {
        **dict.fromkeys(("taxi.txt", "mine.txt"), good.trace),
        **{
            "app.toml": application,
            "network.toml": network,
            "empty": b"",
            "taken": b"a file\n",
            "closed": b"1\n",
        },
        **{"binary": bytes(range(256)), "utf16": "10\n20\n".encode("utf-16")},
    }
    for name, content in plain.items():
        if name in named or (name == "taxi.txt" and "link" in named):
            _write(name, content)
    folders: dict[str, Folder] = {"going": rng.choice(good.runs)[1], "sys": good.sysfs, "folder": {}}
    for name, files in folders.items():
        if name in named or (name == "sys" and "power" in words):
            _folder(name, files)
    for name, target in (("link", "taxi.txt"), ("loop", "loop"), ("dangling", "nowhere/x")):
        if name in named:
            Path(name).symlink_to(target)
    if "closed" in named:
        Path("closed").chmod(0)


def _folder(name: str, files: Folder) -> None:
    Path(name).mkdir(exist_ok=True)
    for path, content in files.items():
        _write(f"{name}/{path}", content)


def _traces(rng: Random) -> list[str]:
    name = rng.choice(("taxi.txt", "mine.txt", "tweets-x.txt"))
    _write(name, spoiled.trace(rng, material().trace))
    _write("good.txt", material().trace)
    return list(
        rng.choice(
            (
                ("simulate", "--policy", "threshold-c", "--service-rate", "100", "--trace", name),
                (
                    "simulate",
                    "--policy",
                    "fixed",
                    "--service-rate",
                    "9",
                    "--trace",
                    name,
                    "--history",
                    "h.csv",
                ),
                (
                    "simulate",
                    "--policy",
                    "ds2",
                    "--preset",
                    "taxi",
                    "--trace",
                    "good.txt",
                    "--training",
                    name,
                ),
                ("simulate", "--policy", "ql", "--application", "pipeline", "--trace", name, "--json"),
                ("compare", "--policies", "fixed", "--preset", "taxi", "--threads", "1", "--trace", name),
                ("trace", "describe", name),
                ("trace", "describe", name, "--json", "--page", "p.html"),
                ("trace", "describe", "good.txt", "--against", name),
                ("trace", "synth", "--slots", "40", "--out", name),
                ("sweep", "--policies", "fixed", "--preset", "taxi", "--out", "table", "--trace", name),
                ("run", "paced", "--policy", "fixed", "--out", "ran", "--rates", name),
            )
        )
    )


def _journals(rng: Random) -> list[str]:
    way = rng.choice((spoiled.in_bytes, spoiled.in_lines, spoiled.in_json, spoiled.in_json))
    _write("run/journal.jsonl", way(rng, rng.choice(material().journals)))
    return ["replay", rng.choice(("run", "run/journal.jsonl")), *rng.choice(((), ("--json",)))]


def _plans(rng: Random) -> list[str]:
    good = dict(zip(("app", "network", "current"), rng.choice(material().plans), strict=True))
    good["spark-times"] = material().spark_times if rng.random() < 0.2 else None
    there = {name: content for name, content in good.items() if content is not None}
    for name in rng.sample(list(there), rng.choice((1, 1, 1, 2))):
        of_kind = spoiled.in_json if name == "spark-times" else spoiled.in_toml
        there[name] = rng.choice((of_kind, of_kind, of_kind, spoiled.in_bytes, spoiled.in_lines))(
            rng, there[name]
        )
    words = ["plan", "--time-limit", "1"]
    for name, content in there.items():
        _write(f"{name}.toml", content)
        words += [f"--{name}", f"{name}.toml"]
    more: tuple[tuple[str, ...], ...] = (
        (),
        (),
        ("--json",),
        ("--restricted",),
        ("--write-lp", "p.lp"),
        ("--out", "p.html"),
    )
    return words + list(rng.choice(more))


def _runs(rng: Random) -> list[str]:
    """A run folder with files missing, cut, changed, closed, or folders in their place."""
    began, files = rng.choice(material().runs)
    _folder("going", {**files, "work/orders/1.json": b'{"kind": "resume", "order": {}}', "metrics/x": b""})
    for _ in range(rng.choice((1, 1, 2))):
        path = Path("going") / rng.choice((*files, *files, "summary.json", "work", "work/orders", "metrics"))
        match rng.randrange(8):
            case 0:
                _remove(path)
            case 1:
                _remove(path)
                with suppress(OSError):
                    path.mkdir(parents=True)
            case 2 if path.exists():
                path.chmod(0)
            case 3:
                _remove(path)
                with suppress(OSError):
                    path.symlink_to(rng.choice(("no/where", path.name, ".", "/dev/full", "/proc/self/mem")))
            case _ if path.is_file() and not path.is_symlink():
                way = rng.choice((spoiled.in_bytes, spoiled.in_json, spoiled.in_json, spoiled.in_lines))
                with suppress(ValueError):  # spoiled already, it is no JSON to be spoiled as such
                    path.write_bytes(way(rng, path.read_bytes()))
            case _ if not path.exists() and not path.is_symlink():
                with suppress(OSError):
                    path.write_bytes(
                        rng.choice((b"", b"{}", b'{"finished": true}', b"[1]", b"x", b'{"finished": 0}'))
                    )
    return list(
        rng.choice(
            (
                ("replay", "going"),
                ("order", "pause", "going"),
                ("order", "resume", "going"),
                (
                    "order",
                    "override",
                    "going",
                    rng.choice(("heavy", "light", "x")),
                    rng.choice(("2", "1", "9")),
                ),
                ("order", "lift", "going", "heavy"),
                *(("run", "paced", *began, "--out", "going"),) * 4,
            )
        )
    )


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        for inner in path.iterdir():
            _remove(inner)
        path.rmdir()


def _machines(rng: Random) -> list[str]:
    """A tree like /sys, and what was left behind by a process that held a frequency."""
    _folder("sys", material().sysfs)
    paths = sorted(path for path in Path("sys").rglob("*") if path.is_file())
    for _ in range(rng.choice((0, 1, 3))):
        path = rng.choice(paths)
        path.write_bytes(rng.choice((b"", b"x\n", b"-1\n", b"9" * 400, b"\xff", b"1 2 3\n", b"nan", b"0\n")))
    policy = {"governor": "a", "min_khz": 1, "max_khz": 2, "setspeed_khz": None}
    left = {"pid": 1, "root": "/x", "boot": None, "policies": {"policy0": policy}}
    if rng.random() < 0.7:
        way = rng.choice((spoiled.in_bytes, spoiled.in_json, spoiled.in_json))
        _write("state/frequency.json", way(rng, json.dumps(left).encode()))
    return [
        "power",
        "--seconds",
        "0.1",
        *rng.choice((("--restore",), (), ("--ghz", "1.5", "--for", "0.1"), ("--json",))),
    ]


_KINDS: dict[str, tuple[float, Callable[[Random], list[str]]]] = {
    "arguments": (40, _arguments),
    "parameters": (8, _parameters),
    "traces": (16, _traces),
    "journals": (14, _journals),
    "plans": (12, _plans),
    "runs": (9, _runs),
    "machines": (1, _machines),
}


def files() -> Iterator[tuple[str, bytes | str | None]]:
    """All that is in the current directory, by path: content of files, targets of links, None for folders."""
    for folder, names, found in os.walk("."):
        for name in (*names, *found):
            path = os.path.join(folder, name)
            if os.path.islink(path):
                yield path, os.readlink(path)
            elif os.path.isdir(path):
                yield path, None
            else:
                yield path, Path(path).read_bytes()
