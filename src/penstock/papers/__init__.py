"""Tables and figures of the papers: run, measured beside printed, drawn."""
