"""Applications that run on Spark under control: everything put together."""
