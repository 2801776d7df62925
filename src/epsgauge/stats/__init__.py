"""From four counts to a posterior for ε: NumPy and SciPy only."""
