"""The example site's settings as the tests use them."""

import os

import django

from example.settings import *  # noqa: F403
from example.settings import INSTALLED_APPS as SITE_APPS
from example.settings import MIDDLEWARE as SITE_MIDDLEWARE
from example.settings import PGPERF as SITE_PGPERF

# openpyxl reads as on a site without lxml; one test sets it to True.
os.environ.setdefault("OPENPYXL_LXML", "False")

#: tests.library has a relation of every kind.
INSTALLED_APPS = [*SITE_APPS, "tests.library"]
# Pages under test need no collected files, and the live server finds static files by itself.
MIDDLEWARE = [name for name in SITE_MIDDLEWARE if not name.startswith("whitenoise.")]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

if django.VERSION >= (6, 1):  # which calls the older settings deprecated
    MAILERS = {"default": {"BACKEND": "django.core.mail.backends.smtp.EmailBackend"}}

# Relays, proxies and poolers of tests listen on ports of their own.
PGPERF = {
    **SITE_PGPERF,
    "ALLOWED_HOSTS": [*SITE_PGPERF["ALLOWED_HOSTS"], "127.0.0.1:*", "localhost:*"],
    "MAX_RUN_SECONDS": 1800,  # the default, whatever the example site needs
}
