"""What each picture shows, computed with NumPy apart from how it is drawn; `draw` draws it with matplotlib."""
