"""The few names Penstock takes from plotly, which ships no types."""
