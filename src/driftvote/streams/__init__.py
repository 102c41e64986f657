"""Sources of rows: simulated streams with their truth, and the data of published experiments."""
