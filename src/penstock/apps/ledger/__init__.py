"""Entries of accounts, each with its number and balance: a tuple lost, doubled or out of order shows."""
