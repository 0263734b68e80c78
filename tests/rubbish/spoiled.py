"""Good files, spoiled: cut, with bytes and lines changed, with other values in JSON and TOML."""

import json
import re
from random import Random
from typing import Any

from rubbish.odd import words

_ODD: tuple[Any, ...] = (
    *json.loads("[null, true, false, 0, -1, 1, 2, 3.5, -2.5, 1e308, 1e-320, NaN, Infinity, -Infinity]"),
    *(10**9, 2**31, 2**63, 10**18, -(10**18), 10**400),
    *("", "x", "inf", "-inf", "nan", "1", "x" * 3000, "\x1b[2J", "a\nb", "\ud800", "\xfc"),
    *([], {}, [[]], [None], {"kind": "x"}, {"": None}, [0] * 1000, {"kind": "Header"}),
    *("threshold-c", "ql", "nowhere:Policy", "tuned", "mpc", {"name": "fixed"}, {"dtype": "O", "shape": [1]}),
)
_LONG_LINE = 1_000_000  # bytes: it is doubled no more
_DEEP = "\0deep\0"  # stands for a value too deep to be written by `json` itself
_NUMBERS = (
    *words(
        "0 -1 nan inf -inf 1e400 1e15 1.0000001e15 1e-320 x 1_0 1,5 0x10 1e -0 +5 1.5.2 true 1e308",
    ),
    *("", " ", "1 2", "1\t", "\N{ARABIC-INDIC DIGIT THREE}", "9" * 400, "\x00", "\x1b[31m5"),
)
_TOML = (
    *words(
        "0 -1 1e400 nan inf -inf 1e-320 1e308 1e18 10 1000000 0.5 -0.0 = true [] [[]] {} 1979-05-27",
        "[[0,1],[0,1]] [[0,1e-300],[1e300,1e300]] [1,2]",
    ),
    *('""', '"x"', "'a\tb'", '["a", "a"]', "9" * 30, "9" * 5000, '"' + "a" * 3000 + '"', ""),
)
_ENCODINGS = ("utf-16", "utf-8-sig", "utf-32", "utf-7")
_NO_TEXTS = (b"", b"\n", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\n" * 5000, b"[" * 9999)


def in_bytes(rng: Random, good: bytes) -> bytes:
    """The same with one thing done to its bytes."""
    at, other = sorted((rng.randrange(len(good) + 1), rng.randrange(len(good) + 1)))
    noise = rng.randbytes(rng.randint(1, 12))
    match rng.randrange(12):
        case 0 | 1:
            return good[:at]
        case 2:
            return good[at:]
        case 3 | 4:
            flipped = bytearray(good or b"x")
            for _ in range(rng.choice((1, 1, 2, 20))):
                flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
            return bytes(flipped)
        case 5:
            return good[:at] + noise + good[at:]
        case 6:
            return good[:at] + good[other:]
        case 7:
            return good[:other] + good[at:other] + good[other:]
        case 8:
            return good[:at] + bytes(other - at) + good[other:]
        case 9:
            return good.decode("utf-8", "replace").encode(rng.choice(_ENCODINGS))
        case 10:
            return rng.choice((*_NO_TEXTS, noise))
        case _:
            return good.replace(b"\n", rng.choice((b"\r\n", b"\r", b"", b"\n\n", b"\x0b", b"\x85")))


def in_lines(rng: Random, good: bytes) -> bytes:
    """The same with lines dropped, doubled, swapped, cut or joined."""
    lines = good.splitlines(keepends=True)
    if not lines:
        return b"\n"
    for _ in range(rng.choice((1, 1, 2, 5))):
        at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(6):
            case 0:
                lines[at] = b""
            case 1:
                # A hundred times a hundred times a header is a long journal, and rightly takes long.
                lines[at] *= min(rng.choice((2, 2, 3, 100)), max(_LONG_LINE // (len(lines[at]) + 1), 1))
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
            case 4:
                lines[at] = lines[at].rstrip(b"\n")
            case _:
                lines[at] = in_bytes(rng, lines[at])
    return b"".join(lines)


def in_json(rng: Random, good: bytes) -> bytes:
    """A JSON text, or one a line, with a few values replaced, left out, renamed or doubled."""
    lines = good.splitlines(keepends=True) or [b"{}"]
    at = rng.randrange(len(lines)) if rng.random() < 0.7 else 0  # the first says most
    by_line = all(line.lstrip()[:1] in (b"{", b"") for line in lines[:2]) and lines[0].rstrip().endswith(b"}")
    whole = json.loads(lines[at] if by_line else good)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        whole = _changed(rng, whole)
    deep = rng.choice((50, 900, 1100, 5000, 100_000))
    brackets = rng.choice((("[", "]"), ('{"a":', "}")))
    text = json.dumps(whole).replace(
        json.dumps(_DEEP), f"{deep * brackets[0]}{'' if brackets[0] == '[' else 'null'}{deep * brackets[1]}"
    )
    if not by_line:
        return text.encode()
    lines[at] = text.encode() + b"\n"
    return b"".join(lines)


def _changed(rng: Random, value: Any) -> Any:
    """A copy with one change somewhere inside."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = rng.choice(list(value))
        match rng.randrange(12):
            case 0:
                return {other: item for other, item in value.items() if other != name}
            case 1:
                return {(other + "x" if other == name else other): item for other, item in value.items()}
            case 2:
                return {**value, rng.choice(("", "kind", "x", name.upper())): rng.choice(_ODD)}
        return {**value, name: _changed(rng, value[name])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        match rng.randrange(5):
            case 0:
                return [*value[:at], *value[at + 1 :]]
            case 1:
                return [*value[:at], value[at], *value[at:]]
        return [*value[:at], _changed(rng, value[at]), *value[at + 1 :]]
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < 1e300
        and rng.random() < 0.3
    ):
        return rng.choice((-value, value * 2, value + 1, value - 1, value * 1e9, float(value), str(value)))
    return _DEEP if rng.random() < 0.02 else rng.choice(_ODD)


def in_toml(rng: Random, good: bytes) -> bytes:
    """A TOML text with values replaced, keys renamed, lines and tables left out or doubled."""
    lines = good.decode().splitlines()
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        found = list(re.finditer(r'[-+\w.]+|"[^"]*"', lines[at].split("#")[0]))
        match rng.randrange(8):
            case 0:
                lines[at] = ""
            case 1:
                lines.insert(at, lines[at])
            case 2:
                other = rng.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case _ if found:
                one = rng.choice(found)
                new = rng.choice(
                    (rng.choice(_TOML), rng.choice(_TOML), one[0] + "x", _neighbour(rng, good, one[0]))
                )
                lines[at] = lines[at][: one.start()] + new + lines[at][one.end() :]
            case _:
                lines[at] = rng.choice(("[x]", "[[operators]]", "[[hosts]]", "[goal]", "x = 1", "=", "[["))
    if rng.random() < 0.01:
        lines.append(f"x = {'[' * 5000}{']' * 5000}")
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _neighbour(rng: Random, good: bytes, word: str) -> str:
    """Another word of the kind from the same file: cycles, doubles, hosts that are not there."""
    quoted = word.startswith('"')
    found = re.findall(r'"[^"]*"' if quoted else r"[-+\w.]+", good.decode())
    return str(rng.choice(found))


def trace(rng: Random, good: bytes) -> bytes:
    """A trace with something in it that is no rate."""
    if rng.random() < 0.4:
        return rng.choice((in_bytes, in_lines))(rng, good)
    lines = good.decode().splitlines()
    for _ in range(rng.choice((1, 1, 3, len(lines)))):
        lines[rng.randrange(len(lines))] = rng.choice(_NUMBERS)
    return ("\n".join(lines) + rng.choice(("", "\n", "\n\n", "\r\n"))).encode()
