"""The tests' site with OPTIONS of a test's own, as JSON in the environment.

A text that begins with "import:" stands for the object of that name.
"""

import json
import os

from django.utils.module_loading import import_string

from tests.site_settings import *  # noqa: F403
from tests.site_settings import DATABASES as SITE_DATABASES

IMPORT = "import:"


def with_objects(option):
    if isinstance(option, str) and option.startswith(IMPORT):
        return import_string(option.removeprefix(IMPORT))
    return option


OPTIONS = json.loads(os.environ.get("PGPERF_TEST_OPTIONS", "{}"))
if isinstance(OPTIONS, dict):
    OPTIONS = {key: with_objects(value) for key, value in OPTIONS.items()}
DATABASES = {name: {**alias, "OPTIONS": OPTIONS} for name, alias in SITE_DATABASES.items()}
