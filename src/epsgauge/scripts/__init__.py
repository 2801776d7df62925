"""Unmodified training scripts: run up to the private training, which is then replayed by forks."""
