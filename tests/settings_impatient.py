"""The tests' settings for a worker whose death is noticed soon."""

from tests.settings import *  # noqa: F403
from tests.settings import PGPERF

PGPERF = {**PGPERF, "STALE_SECONDS": 5.0, "HEARTBEAT_SECONDS": 0.2}
