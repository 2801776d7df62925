"""One file for each chart: what it shows (NumPy), its drawing as SVG, the words beside it. `charts` is the table."""
