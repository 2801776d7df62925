"""Canaries made from the data itself: records that training is likely to remember, one kind per file."""
