"""The slotted, trace-driven simulator."""
