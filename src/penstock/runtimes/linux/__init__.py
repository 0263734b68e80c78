"""This machine's processor under Linux: its frequency, set and set back, and the energy it uses."""
