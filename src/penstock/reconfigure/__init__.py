"""One operator's reconfiguration as a state machine, in words of no engine."""
