"""Any randomised function of two data sets: its outputs, what tells them apart, and scores with bits."""
