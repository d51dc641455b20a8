"""The pages of tests.page_urls behind a web server, whose processes keep their connections."""

from tests.page_settings import *  # noqa: F403
from tests.page_settings import DATABASES as SITE_DATABASES

DATABASES = {name: {**alias, "CONN_MAX_AGE": None} for name, alias in SITE_DATABASES.items()}
DEBUG = False
