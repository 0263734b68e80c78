"""Where every replica runs, and what changing it costs: EDRP (Cardellini 2017), solved exactly."""
