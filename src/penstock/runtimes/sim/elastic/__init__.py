"""One elastic operator, tuple by tuple: splitter, replicas, merger, and keys that move while tuples flow."""
