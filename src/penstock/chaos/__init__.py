"""Faults nobody chose: a run with known results, and what happens to it drawn from a seed."""
