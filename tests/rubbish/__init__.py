"""Bad input by the thousand: drawn from a seed, given to the commands, and judged.

`python -m rubbish` (in `tests`, or `make rubbish`) tries as many as asked for; `unit/cli/test_rubbish.py`
tries a few hundred. It is a test with a large budget, so it lives with the tests: it replaces what would
start Spark, and it spoils the journals and examples that are kept for tests and people.
"""
