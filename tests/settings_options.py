"""The tests' site with OPTIONS of a test's own, as JSON in the environment."""

import json
import os

from tests.site_settings import *  # noqa: F403
from tests.site_settings import DATABASES as SITE_DATABASES

OPTIONS = json.loads(os.environ.get("PGPERF_TEST_OPTIONS", "{}"))
DATABASES = {name: {**alias, "OPTIONS": OPTIONS} for name, alias in SITE_DATABASES.items()}
