"""What a run is judged by, wherever it is told."""

MOST_LATE_PCT = 5.0  # of the intervals after the first minute, of a run that kept its objective
SELDOM_FULL_PCT = 5.0  # of the intervals: a host that is full no more often needs no word
