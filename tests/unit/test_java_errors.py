"""Errors as Spark 4.3 words them, shortened where a stack goes on, and the line people get to see."""

import pytest

from penstock.java_errors import in_one_line

_FAILED_WRITE = """An error occurred while calling o102.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 2.0 failed 1 times, \
most recent failure: Lost task 0.0 in stage 2.0 (TID 2) (localhost executor driver): java.io.IOException: \
Mkdirs failed to create file:/proc/nope/x
\tat org.apache.hadoop.fs.ChecksumFileSystem.create(ChecksumFileSystem.java:774)

Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.$anonfun$abortStage$2(DAGScheduler.scala:2935)
Caused by: java.io.IOException: Mkdirs failed to create file:/proc/nope/x
\tat org.apache.hadoop.fs.ChecksumFileSystem.create(ChecksumFileSystem.java:774)
\t... 63 more
"""
_FAILED_FUNCTION = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback \
(most recent call last):
  File "/home/me/job.py", line 21, in parse
    raise ValueError("no good: row 3")
ValueError: no good: row 3
 SQLSTATE: 38000"""
_FAILED_QUERY = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call \
last):
  File "/home/me/job.py", line 39, in keep
    open("/nowhere/file")
FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/file'

=== Streaming Query ===
Identifier: [id = 7cc3bec0-5ef1-4c82-a552-a31036509c17, runId = cdc78d0d-7eaa-4282-87c5-61b5de2e6c54]
Current State: ACTIVE
"""
_NO_TABLE = """[TABLE_OR_VIEW_NOT_FOUND] The table or view `trips` cannot be found. Verify the spelling.
Search path: [`system`.`builtin`]. SQLSTATE: 42P01; line 1 pos 14;
'Project ['x]
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (_FAILED_WRITE, "java.io.IOException: Mkdirs failed to create file:/proc/nope/x"),
        (_FAILED_FUNCTION, "ValueError: no good: row 3"),
        (_FAILED_QUERY, "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/file'"),
    ],
)
def test_of_stack_traces_the_cause_is_told(text: str, line: str) -> None:
    assert in_one_line(RuntimeError(text)) == line
    assert in_one_line(text) == line


def test_without_a_stack_trace_an_exception_says_it_first_and_spark_without_its_codes() -> None:
    assert in_one_line(RuntimeError(_NO_TABLE)) == (
        "The table or view `trips` cannot be found. Verify the spelling."
    )
    missing = "[PATH_NOT_FOUND] Path does not exist: file:/nowhere. SQLSTATE: 42K03"
    assert in_one_line(RuntimeError(missing)) == "Path does not exist: file:/nowhere."
    assert in_one_line(OSError(28, "No space left on device")) == "[Errno 28] No space left on device"
    assert in_one_line(TimeoutError()) == "TimeoutError"


def test_a_program_says_it_last() -> None:
    assert in_one_line("") == "no reason given"
    assert in_one_line("it ended by itself") == "it ended by itself"
    assert in_one_line("Error occurred during initialization of VM\nToo small maximum heap\n") == (
        "Too small maximum heap"
    )
    logged = (
        "26/11/16 12:59:55 ERROR Worker: java.net.BindException: Address already in use\n\tat a.B.c\nbye\n"
    )
    assert in_one_line(logged) == "java.net.BindException: Address already in use"


def test_a_line_that_never_ends_is_cut() -> None:
    assert len(in_one_line("x" * 1000)) == 300
