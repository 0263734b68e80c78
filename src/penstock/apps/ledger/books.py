"""What is in the ledger, without Spark: entry number n, for any n, and what has to come out."""

from collections.abc import Iterator
from typing import NamedTuple

ACCOUNTS, BRANCHES = 40, 7
_MOST = 1_000  # an entry's amount lies within this, either way


class Entry(NamedTuple):
    """Money that comes to an account, or leaves it."""

    id: int
    account: int
    amount: int


class Posted(NamedTuple):
    """An entry with its place among those of its account, and among those of its branch."""

    id: int
    account: int
    number: int  # from 1, of the account
    balance: int  # of the account, after it
    branch: int
    branch_number: int  # from 1, of the branch
    branch_total: int  # of the branch, after it


def entry(number: int) -> Entry:
    """Drawn by its number: the same however often it is made. Some accounts have many, some few."""
    account = number * number * 31 % 997 % ACCOUNTS
    amount = number * 7_919 % (2 * _MOST + 1) - _MOST
    return Entry(number, account, amount)


def branch_of(account: int) -> int:
    return account % BRANCHES


def line_of(one: Entry) -> str:
    return f"{one.id};{one.account};{one.amount}"


def posted(total: int) -> Iterator[Posted]:
    """What has to come of the first entries: one after another, as in a book."""
    accounts, branches = [(0, 0)] * ACCOUNTS, [(0, 0)] * BRANCHES
    for one in map(entry, range(total)):
        branch = branch_of(one.account)
        accounts[one.account] = with_amount(accounts[one.account], one.amount)
        branches[branch] = with_amount(branches[branch], one.amount)
        yield Posted(one.id, one.account, *accounts[one.account], branch, *branches[branch])


def with_amount(book: tuple[int, int], amount: int) -> tuple[int, int]:
    """A book after one more entry."""
    number, total = book
    return number + 1, total + amount
