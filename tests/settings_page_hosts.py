"""The settings of load hosts that see pages as a user, with pages of the tests' own."""

import os

from tests.page_settings import *  # noqa: F403
from tests.settings_impatient import PGPERF as IMPATIENT

PGPERF = {**IMPATIENT, "PAGE_USERS": ["reader"]}
if key := os.environ.get("PGPERF_TEST_SECRET_KEY"):
    SECRET_KEY = key
