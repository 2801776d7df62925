"""Settings that all tests share."""

from hypothesis import settings

# The same examples in every run, and no limit on time: machines are shared.
settings.register_profile("epsgauge", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("epsgauge")
