"""The tests' settings for a worker whose death is noticed soon, but not so soon that one of a busy
machine is taken for dead.
"""

from tests.settings import *  # noqa: F403
from tests.settings import PGPERF

PGPERF = {**PGPERF, "STALE_SECONDS": 15.0, "HEARTBEAT_SECONDS": 0.2}
