"""Where every replica runs, and what changing it costs: EDRP (Cardellini 2018a), solved exactly."""
