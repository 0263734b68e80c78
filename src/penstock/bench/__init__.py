"""Speed, memory and reconfigurations, as ratios measured within one run."""
