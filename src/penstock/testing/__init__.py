"""Contracts to subclass, for our tests and for other people's policies."""
