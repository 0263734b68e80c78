"""Every command line that the docs show is one that the command takes."""

import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

import pytest
import typer

from penstock.cli.app import app, main
from penstock.simulation.play import Job, run
from rubbish.gates import Accepted, closed
from rubbish.material import Folder, material

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = vars(typer.main.get_command(app))["commands"]

# A table of results has rows that show options only; its page says that they are of these commands.
_OPTIONS_ONLY = {"--policy": "penstock simulate", "--policies": "penstock compare"}
_STANDS_FOR = {"APP": "paced", "JOURNAL": "my-run/journal.jsonl"}
# What takes long, and how much of it is enough to see whether it is accepted.
_SMALL = {"--slots": 40, "--seeds": 1, "--rows": 9, "--time-limit": 1}
_ADDED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("simulate",): ("--slots", "40"),
    ("compare",): ("--slots", "40", "--seeds", "1", "--threads", "1"),
    ("sweep",): ("--slots", "40"),
    ("power",): ("--sys", "sys", "--state", "state"),  # no frequency of this machine is held
}


@dataclass(frozen=True, slots=True)
class Shown:
    """A command on a page."""

    page: str
    line: int
    text: str
    refusal: str = ""  # what the page shows it to answer, where it is one that is refused
    set_here: dict[str, str] = field(default_factory=dict, hash=False)  # T=... on the same page

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def words(self) -> list[str]:
        """Without `penstock`."""
        words = [re.sub(r"^\$(\w+)$", self._value, word) for word in shlex.split(self.text)[1:]]
        return [_STANDS_FOR.get(word, word) for word in words]

    def _value(self, name: re.Match[str]) -> str:
        return self.set_here.get(name[1], name[0])


def shown(page: Path) -> Iterator[Shown]:
    """All commands on a page: lines of blocks that are in no language, and code within sentences."""
    name = str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else page.name
    lines = page.read_text(encoding="utf-8").splitlines()
    set_here = dict(re.findall(r"`([A-Z])=([^`]+)`", "\n".join(lines)))
    language: str | None = None  # outside of blocks
    number = 0
    while number < len(lines):
        line, began = lines[number], number + 1
        number += 1
        if line.startswith("```"):
            language = line[3:].strip() if language is None else None
        elif language is None:
            for text in re.findall(r"`([^`]+)`", line):
                first, _, more = text.partition(" ")
                if first in _OPTIONS_ONLY and line.startswith("| `--"):
                    yield Shown(name, began, f"{_OPTIONS_ONLY[first]} {text}", set_here=set_here)
                elif more and first in ("penstock", *COMMANDS):
                    whole = text if first == "penstock" else f"penstock {text}"
                    yield Shown(name, began, whole, set_here=set_here)
        elif language in ("", "sh", "bash", "console"):
            whole = _without_comment(line)
            while whole.endswith("\\") and number < len(lines):
                whole = f"{whole[:-1]} {_without_comment(lines[number])}"
                number += 1
            answer = lines[number] if number < len(lines) else ""
            for text in re.split(r"\s(?:;|&&|\|)\s", whole.removeprefix("$ ")):
                if text.split()[:1] == ["penstock"]:
                    refusal = answer if answer.startswith("penstock: ") else ""
                    yield Shown(name, began, text.strip(), refusal, set_here)


def _without_comment(line: str) -> str:
    return re.sub(r"(^|\s)#.*$", "", line).rstrip()


# What there is of commands and options --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Command:
    """One of the commands, as far as its words tell."""

    path: tuple[str, ...]
    options: frozenset[str]
    flags: frozenset[str]  # options without a value


@cache
def command_of(words: tuple[str, ...]) -> Command:
    """The command that words begin with."""
    found: object = typer.main.get_command(app)
    path: list[str] = []
    for word in words:
        inner = getattr(found, "commands", {}).get(word)
        if inner is None:
            break
        found = inner
        path.append(word)
    params = getattr(found, "params", ())
    flags = [
        name for one in params for name in (*one.opts, *one.secondary_opts) if getattr(one, "is_flag", 0)
    ]
    names = [name for one in params for name in (*one.opts, *one.secondary_opts)]
    return Command(tuple(path), frozenset((*names, "--help")), frozenset((*flags, "--help")))


def is_whole(one: Shown) -> bool:
    """Whether it could be typed: a mention names a command or one of its options, and leaves the rest out."""
    words = one.words
    known = command_of(tuple(words))
    ends_open = words[-1:] and words[-1].startswith("--") and words[-1] not in known.flags
    return len(words) > len(known.path) and "..." not in one.text and not ends_open


def unknown(one: Shown) -> list[str]:
    """Words of a mention that the command does not know."""
    words = one.words
    known = command_of(tuple(words))
    if not known.path and words[:1] not in ([], ["--help"], ["--version"]):
        return words[:1]
    return [word for word in words if word.startswith("-") and word.partition("=")[0] not in known.options]


ALL = [one for page in PAGES for one in shown(page)]
WHOLE, MENTIONED = [one for one in ALL if is_whole(one)], [one for one in ALL if not is_whole(one)]


# Where they run -------------------------------------------------------------------------------------------

_TRIP = (
    "07290D,E7750A,2013-01-01 00:00:00,2013-01-01 00:02:00,120,0.44,"
    "-73.956528,40.716976,-73.962440,40.715008,CSH,3.50,0.50,0.50,0.00,0.00,4.50\n"
)
_OPERATORS = "def parse(lines):\n    return lines\n\n\ndef count(lines):\n    return lines\n\n\n"


def _scenery() -> Folder:
    """The files that the docs name, small."""
    rates = material().trace
    traces = ("my-rates.txt", "taxi.txt", "tweets.txt", "taxi-synthetic.txt", "trace.txt", "walk.txt")
    [own] = re.findall(
        r"```python\n(from penstock import App.*?)```", (ROOT / "docs/spark.md").read_text(), re.DOTALL
    )
    published = ("taxi.txt", "taxi-last-month.txt", "tweets.txt")
    plans = {
        str(path.relative_to(ROOT)): path.read_bytes() for path in (ROOT / "docs/examples/plan").iterdir()
    }
    return {
        **{f"here/{name}": rates for name in traces},
        **{f"{data}/rates/{name}": rates for data in ("shared/data", "here/DIR") for name in published},
        "here/trips.csv": _TRIP.encode(),
        "here/quotes.csv": b"2013-01-01T00:00:00,A,1.0,5\n",
        "here/2013/trips.parquet": b"PAR1",
        "here/tweets/tweets.json": b'{"created_at": "2020-03-01T00:00:00"}\n',
        "here/mine.py": (ROOT / "docs/examples/mine.py").read_bytes(),
        "here/mymodule.py": (_OPERATORS + own).encode(),
        **{f"here/{name}": content for name, content in plans.items()},
        **{f"here/my-run/{name}": content for name, content in material().runs[0][1].items()},
        **{f"here/sys/{name}": content for name, content in material().sysfs.items()},
    }


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all that the docs name, and the data of the papers beside it."""
    for name, content in _scenery().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("PENSTOCK_DATA", raising=False)
    return tmp_path / "here"


def _begins(*_: object, **__: object) -> NoReturn:
    raise Accepted


def _all_begin(jobs: Sequence[Job], *_: object, **__: object) -> NoReturn:
    """Every one of them, so that none is refused after the first has begun."""
    for spec, rates, training in jobs:
        with suppress(Accepted):
            run(spec, rates, training=training)
    raise Accepted


@pytest.fixture(scope="module")
def gates() -> Iterator[None]:
    """Those of `rubbish`; nothing is simulated or planned, and no Java or master has to be there."""
    with (
        closed(),
        patch("penstock.simulation.one_operator.play", _begins),
        patch("penstock.simulation.graph.run_application", _begins),
        patch("penstock.simulation.managed.played", _begins),
        patch("penstock.simulation.managed.chosen_by_simulation", _begins),
        patch("penstock.simulation.play.run_each", _all_begin),
        patch("penstock.planning.solve.solve", _begins),
        patch("penstock.java.java", lambda: Path("java")),
        patch("penstock.live.run.check_master", lambda *_, **__: None),
    ):
        yield


def small(words: Sequence[str]) -> list[str]:
    """The same command with as little to compute as will do."""
    known = command_of(tuple(words))
    less = list(words)
    for option, most in _SMALL.items():
        for at in [at for at, word in enumerate(less[:-1]) if word == option]:
            less[at + 1] = str(min(int(less[at + 1]), most))
    added = () if "spark" in less else _ADDED.get(known.path, ())
    for option, value in zip(added[::2], added[1::2], strict=True):
        if option not in less:
            less += [option, value]
    return less


def answer(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> tuple[int | None, str]:
    """Exit status, None where it would now begin; and what was said on standard error."""
    if "--out" in words:  # what another command of the docs finds there, this one makes
        made = Path(words[words.index("--out") + 1])
        shutil.rmtree(made) if made.is_dir() else made.unlink(missing_ok=True)
    status: int | None = None
    # Modules stay, as their policies stay in the registry.
    with patch("sys.argv", ["penstock", *words]), patch("sys.path", list(sys.path)):
        try:
            main()
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 0
        except Accepted:
            pass
    return status, capsys.readouterr().err


@pytest.mark.usefixtures("gates", "here")
@pytest.mark.parametrize("one", WHOLE, ids=lambda one: f"{one.where} {one.text}")
def test_a_command_that_the_docs_show_is_accepted(one: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    status, err = answer(small(one.words), capsys)
    if one.refusal:
        assert (status, err) == (2, f"{one.refusal}\n"), one.where
    else:
        assert status in (0, None), f"{one.where}: {one.text}\nstatus {status}: {err}"


@pytest.mark.parametrize("one", MENTIONED, ids=lambda one: f"{one.where} {one.text}")
def test_a_command_that_the_docs_mention_is_there_with_its_options(one: Shown) -> None:
    assert not unknown(one), f"{one.where}: {one.text}"


def test_what_the_docs_make_the_makefile_has() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for page in PAGES:
        for target in re.findall(r"(?:`|^)make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            assert f"\n{target}:" in makefile, f"{page}: make {target}"


PAGE = """
Say `penstock run paced --policy ds2` or `simulate --polity ql`; `compare --application diamond ...` is short.

```
penstock simulate --slots 9 ; penstock trace synth --slots 9 --out t.txt   # `penstock nothing`
penstock compare --trace $T \\
  --policies ds2
$ penstock simulate --set nonsense
penstock: --set 'nonsense': give NAME=VALUE, as in threshold=.6
```

```python
penstock.simulate(rates)
```

| Run |
|---|
| `--policies ql --infrastructure A:3` |

`T=taxi.txt` is a trace.
"""


def test_commands_are_found_on_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    found = list(shown(page))
    assert [(one.line, " ".join(one.words)) for one in found] == [
        (2, "run paced --policy ds2"),
        (2, "simulate --polity ql"),
        (2, "compare --application diamond ..."),
        (5, "simulate --slots 9"),
        (5, "trace synth --slots 9 --out t.txt"),
        (6, "compare --trace taxi.txt --policies ds2"),
        (8, "simulate --set nonsense"),
        (18, "compare --policies ql --infrastructure A:3"),
    ]
    assert [one.line for one in found if not is_whole(one)] == [2]
    assert [one.line for one in found if one.refusal] == [8]
    assert [unknown(one) for one in found if unknown(one)] == [["--polity"]]


@pytest.mark.usefixtures("gates", "here")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("penstock simulate --polcy ql", "--polcy"),
        ("penstock simulate --policy qql", "qql"),
        ("penstock compare --policies ds2,threshold-c,qql", "qql"),
        ("penstock compare --application diamond --application-policies drs-c,drs-d", "drs-d"),
        ("penstock simulate --trace nowhere.txt", "nowhere.txt"),
        ("penstock plan --app docs/examples/plan/cameras.toml --network no.toml", "no.toml"),
        ("penstock run paced --minuts 3", "--minuts"),
        ("penstock run other:app", "other"),
        ("penstock reproduce taas-table", "taas-table"),
        ("penstock bench nothing", "nothing"),
        ("penstock simulatee", "simulatee"),
    ],
)
def test_a_command_that_is_refused_is_noticed(
    text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, err = answer(small(Shown("page.md", 1, text).words), capsys)
    assert status == 2
    assert said in err
