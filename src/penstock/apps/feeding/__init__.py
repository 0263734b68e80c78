"""What brings tuples into applications: when they are due, what they are, the thread that sends."""
