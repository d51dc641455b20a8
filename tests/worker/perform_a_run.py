"""A program that performs a run for tests of its process: one argument, the run's id."""

import os
import sys

import django
from django.conf import settings

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
settings.PGPERF = {**settings.PGPERF, "STALE_SECONDS": 2.0, "HEARTBEAT_SECONDS": 0.2}
django.setup()

from pgperf.worker import execution  # noqa: E402

execution.perform(int(sys.argv[1]), "w@h")
