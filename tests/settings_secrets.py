"""The tests' settings for a worker whose passwords lie in files, and which can be made to fail."""

import os

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as SITE_APPS
from tests.settings import PGPERF as SITE_PGPERF

PGPERF = {
    **SITE_PGPERF,
    "SECRETS_DIR": os.environ.get("PGPERF_TEST_SECRETS", ""),
    "BUILD_DIR": os.environ.get("PGPERF_TEST_BUILD") or SITE_PGPERF["BUILD_DIR"],
}
INSTALLED_APPS = [*SITE_APPS, "tests.security.failing"]
