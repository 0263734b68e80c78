"""What was published, how to run it, and what came out."""
