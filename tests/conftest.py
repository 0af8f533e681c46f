"""What all tests share."""

from hypothesis import settings

# the same examples each time: a suite that fails for one person fails for all
settings.register_profile("vastfleet", derandomize=True, deadline=None)
settings.load_profile("vastfleet")
