"""The command line: parse, call, print. Nothing is decided here."""

import atexit
import gc


def main() -> None:
    """Run the command line of this process."""
    # Imported modules are tens of thousands of objects that live to the end. Searching them for garbage
    # again and again, and once more at exit, would take a third of a short command's time.
    gc.set_threshold(20_000, 50, 100)
    atexit.register(gc.freeze)
    from penstock.cli.app import main as parse_and_run

    parse_and_run()
