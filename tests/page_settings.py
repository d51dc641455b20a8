"""The example site with pages that cannot be replayed, or that do more than read."""

import django

from tests.site_settings import *  # noqa: F403

ROOT_URLCONF = "tests.page_urls"
#: Django's log mails each error to them. Before Django 6.0 they are pairs.
ADMINS = ["ops@example.com"] if django.VERSION >= (6, 0) else [("Ops", "ops@example.com")]
