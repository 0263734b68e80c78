"""Policies trained or tuned on a model of what was measured, before or beside a run."""
