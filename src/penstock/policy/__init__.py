"""Who decides: pure policies, one algorithm per file."""
