"""DEBS 2015 query 1: the ten most frequent routes of the last 30 minutes."""
