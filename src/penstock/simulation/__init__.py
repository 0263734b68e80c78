"""What is simulated, and running it: one operator, a graph, a managed application; sweeps."""
