"""What is put on Python's path inside a trial: it is imported by every Python of the run, by itself."""
