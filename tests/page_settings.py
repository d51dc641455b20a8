"""The example site with pages that cannot be replayed, or that do more than read."""

from tests.site_settings import *  # noqa: F403

ROOT_URLCONF = "tests.page_urls"
