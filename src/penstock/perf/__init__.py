"""How a deployment will behave: pure formulas and the kernels that evaluate them."""
