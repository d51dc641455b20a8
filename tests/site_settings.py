"""The tests' site with one more app and one more alias: what clients of site workloads are started
with.
"""

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES as SITE_DATABASES
from tests.settings import INSTALLED_APPS as SITE_APPS

INSTALLED_APPS = [*SITE_APPS, "tests.site_app"]
DATABASES = {**SITE_DATABASES, "other": dict(SITE_DATABASES["default"])}
DEBUG = True  # a client must switch it off
