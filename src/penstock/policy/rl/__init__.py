"""What learners share: the problem as arrays, value tables, schedules, tile coding."""
