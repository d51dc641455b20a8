"""The tests' settings for a worker that writes e-mail into files, with links to a test's site."""

import os

import django

from tests.settings import *  # noqa: F403
from tests.settings import PGPERF

_BACKEND, _FOLDER = "django.core.mail.backends.filebased.EmailBackend", os.environ.get("PGPERF_TEST_MAIL", "")
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": _BACKEND, "OPTIONS": {"file_path": _FOLDER}}}
else:
    EMAIL_BACKEND, EMAIL_FILE_PATH = _BACKEND, _FOLDER

PGPERF = {**PGPERF, "CHANGE_EMAILS": ["boss"], "SITE_URL": os.environ.get("PGPERF_TEST_SITE", "")}
