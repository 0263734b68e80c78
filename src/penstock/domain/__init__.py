"""The vocabulary: values only, no behaviour beyond their own invariants."""
