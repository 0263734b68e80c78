"""Applications whose operators take a given time per tuple; the default one has a slow middle operator."""
