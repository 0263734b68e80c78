"""Applications that come with Penstock."""
