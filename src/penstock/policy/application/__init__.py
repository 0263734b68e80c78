"""Application Managers: which requests are granted, or one decision for all operators at once."""
