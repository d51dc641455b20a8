"""Property tests draw the same examples every time, and a busy machine fails none of them."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
