"""What each picture shows, computed with NumPy apart from how it is drawn: `draw` uses matplotlib, `web` makes SVG."""
