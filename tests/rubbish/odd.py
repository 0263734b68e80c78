"""Values that somebody might give by mistake, or on purpose."""

from random import Random


def words(*lines: str) -> tuple[str, ...]:
    """All that is between spaces."""
    return tuple(word for line in lines for word in line.split())


_LONG = ("9" * 400, "9" * 5000)
_OTHER_DIGITS = "\N{ARABIC-INDIC DIGIT THREE}", "\N{SUPERSCRIPT TWO}"

INTS = (
    *words(
        "0 -1 1 2 7 1000 100000 1000000000 2147483648 9223372036854775808 -9223372036854775809",
        "1000000000000000000 1.5 1e3 0x10 1_000 +3 nan inf three -- - true None",
    ),
    *("", " 3", "3 ", *_OTHER_DIGITS, *_LONG),
)
FLOATS = (
    *words(
        "0 -0 -1 1 0.5 1e-3 1e-320 5e-324 1e308 1e309 -1e309 1e-400 1e18 nan -nan inf -inf Infinity",
        "1,5 1_0.0 0x1p3 half 1e",
    ),
    *("", " ", *_OTHER_DIGITS, *_LONG),
)
TEXTS = (
    *words(
        "x - -- --- -x --help= = a= =a a=b=c , ,, a,,b : a: :a :: . ..a %s %n%n {} {0} {policies}",
        "$HOME `id` a;b * NaN null None True [bold] [/red] [red \\ ' \" <b> &amp;",
    ),
    *("", " ", "\t", "\n", "\x1b[31m", "\x07", "\x7f", "\x85", "\u2028", "\ufeff", "\u202e"),
    *("\N{LATIN CAPITAL LETTER A WITH DIAERESIS}", "\N{CRAB}", "e\u0301", "\udcff", "\ud800"),
    *("a" * 300, "a" * 5000, "\xfc" * 5000, "a,b" * 2000, "a b " * 1000, "1:" * 1000, "\udc80" * 40, *_LONG),
)
# What options that take words take, to be used where it belongs, and where it does not.
WORDS = (
    *words(
        "A:3 B:10 A:10 linear:62 frequencies:3 A:0 A:999999999999 2@0.5 0@0 2@39 1e9@1 nan@nan -1@-1",
        "2@1e400 1@@1 0.6,0.2,0.2 1,0,0 nan,nan,nan 1e308,1e308,-1 taxi tweets pipeline diamond",
        "multi-sink top-routes paced lookups algo-trader grant-all token-bucket drs-c lohrmann-c nobody",
        "threshold-c ds2 fixed ql mpc rule-based ql-fa heinze-c vi spl drs-s objective ql-pds-plus",
        "target-utilisation holt-winters holt-winters:0 holt-winters:1e18 holt-winters:86400 oracle",
        "last none day-and-week burst random-walk trips quotes debs2015 step ramp sine constant",
        "4:8:5 0:0:0 1:1:1e400 99999:1:1 1:999999999:0 1000000000:1:5 split-slow-join=40 a-b=1",
        "split=nan =5 equation published first policy live pause-and-resume a:0:1 a:1:-1 a:nan:1",
        "slow:1:1,fast:2:2.5:4 a:1:1:1e400 a:1:1@nan a:1:1,a:1:1 spark.a=b spark.app.name=x a=b",
        "spark:// spark://x:1 local[*] yarn k8s://x nowhere:Policy os:path json:loads :Policy json:",
        "json:JSONDecoder a.b.c:d ..:x 2000-01-01 0001-01-01 9999-12-31 2000-13-01 1 1,1 -1 0 1,2,3",
        "simulator A:3,A:6 10,20 1000000000 10,0 sim spark edf-table-1 taas-tables mpc-figures",
    ),
)
PATHS = (
    *words(
        "missing missing/deeper/x . ./ folder folder/ taken/x taken link loop dangling - -- empty",
        "binary utf16 closed [bold] x.html x.json new/x.txt /dev/null /dev/full /proc/self/mem",
        "/proc/nothing/x /proc/version",
    ),
    *("", " ", "n\nl", "e\x1bc", "\xfc.txt", "\udcff.txt"),
    *("a" * 255, "a" * 256, "a" * 5000, "x/" * 100 + "x"),
)
_LETTERS = "abz-_=.,:@0919 \tX\x1b\udcff\N{CRAB}"


def value(rng: Random, kind: str) -> str:
    """A value for an option of this kind, mostly of its kind, sometimes of any."""
    pools = {"int": INTS, "float": FLOATS, "path": PATHS, "text": (*TEXTS, *WORDS, *WORDS)}
    pool = pools.get(kind, TEXTS)
    if rng.random() < 0.15:
        pool = rng.choice(tuple(pools.values()))
    return rng.choice(pool)


def misspelt(rng: Random, word: str) -> str:
    """A word with a letter too many, one too few, another one, or two the wrong way round."""
    if not word:
        return rng.choice(TEXTS)
    at = rng.randrange(len(word))
    before, one, after = word[:at], word[at], word[at + 1 :]
    letter = rng.choice(_LETTERS)
    swapped = before + after[:1] + one + after[1:]
    return rng.choice(
        (
            before + after,
            before + letter + one + after,
            before + letter + after,
            swapped,
            before,
            word.upper(),
        )
    )
