"""The command line: parse, call, print. Nothing is decided here."""

from penstock.cli.app import main

__all__ = ["main"]
