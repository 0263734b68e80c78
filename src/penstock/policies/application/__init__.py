"""Policies of the Application Manager, one per file."""
