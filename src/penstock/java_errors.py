"""What Java and Spark say in two hundred lines, in one."""

import re

# At the beginning of a line, or behind what led to it: "Caused by: java.io.IOException: disk full".
_NAMED_ERROR = re.compile(r"(?:^|Caused by: |: )([\w.$]*(?:Error|Exception)\b.*: \S.*)")
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\] ")  # Spark's name for what went wrong, before it says so
_LONGEST = 300


def in_one_line(said: BaseException | str) -> str:
    """What went wrong, by an exception or by what a program printed before it ended.

    Of stack traces, Java's or Python's, the last error named: the cause of all others. Where none
    is named, an exception begins with what happened, and what was printed ends with it.
    """
    raised = isinstance(said, BaseException)
    lines = [line.strip() for line in str(said).splitlines() if line.strip()]
    causes = [found.group(1) for line in lines if (found := _NAMED_ERROR.search(line))]
    if causes:
        line = causes[-1]
    elif lines:
        line = lines[0 if raised else -1]
    else:
        line = type(said).__name__ if raised else "no reason given"
    return _CONDITION.sub("", line.partition(" SQLSTATE")[0]).strip()[:_LONGEST]
