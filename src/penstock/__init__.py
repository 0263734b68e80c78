"""Penstock keeps stream-processing applications inside their response-time objective at the lowest cost."""

__version__ = "0.1.0"
