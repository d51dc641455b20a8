"""Settings of the example site. Stack settings come from the environment or from `.stack/env`."""

import json
import os
import re
from pathlib import Path
from typing import Any

from example.env_file import read_env_file
from example.postgres_wheel import installation

BASE_DIR = Path(__file__).resolve().parent.parent

# `make up` writes this file, so that manage.py finds the running stack from any shell.
STACK = (
    os.environ
    if "PGPERF_DB_PORT" in os.environ
    else {**read_env_file(BASE_DIR / ".stack" / "env"), **os.environ}
)

DEBUG = STACK.get("DJANGO_DEBUG", "") == "1"
# The default is for commands without a stack, such as makemigrations. The stack sets a random key.
SECRET_KEY = STACK.get("DJANGO_SECRET_KEY", "only-for-commands-without-a-stack")
ALLOWED_HOSTS = STACK.get("DJANGO_ALLOWED_HOSTS", "127.0.0.1 localhost [::1]").split()

INSTALLED_APPS = [
    "example.books",
    "pgperf",
    "import_export",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "example.middleware.content_security_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "example.urls"
WSGI_APPLICATION = "example.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES: dict[str, dict[str, Any]] = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": STACK.get("PGPERF_DB_NAME", "pgperf"),
        "USER": STACK.get("PGPERF_DB_USER", "pgperf"),
        "PASSWORD": STACK.get("PGPERF_DB_PASSWORD", ""),
        "HOST": STACK.get("PGPERF_DB_HOST", "127.0.0.1"),
        "PORT": STACK.get("PGPERF_DB_PORT", "5432"),
        "OPTIONS": {"connect_timeout": 10},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CELERY_BROKER_URL = STACK.get("PGPERF_REDIS_URL", "redis://127.0.0.1:6379/0")
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 10, "socket_connect_timeout": 5}
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

WEB_STEP = re.compile(r"PGPERF_WEB_\w+_URL")
POOLER_OR_RELAY = re.compile(r"PGPERF_(PGBOUNCER|DISTANCE)\w*_PORT")

PGPERF = {
    "BUILD_DIR": BASE_DIR / ".build",
    "PG_CONFIG": WHEEL / "bin" / "pg_config" if (WHEEL := installation()) else "",
    "PGBENCH": WHEEL / "bin" / "pgbench" if WHEEL else "",
    "SECRETS_DIR": STACK.get("PGPERF_CREDENTIAL_DIR", ""),
    # The demo's targets use alias:default over TCP, the Unix socket's directory, PgBouncer and relays.
    "ALLOWED_HOSTS": [
        "127.0.0.1",
        *(f"127.0.0.1:{port}" for name, port in STACK.items() if POOLER_OR_RELAY.fullmatch(name)),
        *filter(None, [STACK.get("PGPERF_DB_SOCKET")]),
    ],
    "MAX_RUN_SECONDS": 7200,  # `site-steps` starts web servers anew in each block
    # The layer http may request pages from the stack's web servers.
    "WEB_URLS": [url for name, url in STACK.items() if WEB_STEP.fullmatch(name)],
    # JSON such as {"django61": "/opt/django61/bin/python"}.
    "ENVIRONMENTS": json.loads(STACK.get("PGPERF_ENVIRONMENTS", "{}")),
}

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = STACK.get("DJANGO_STATIC_ROOT", BASE_DIR / "staticfiles")
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

# Any user may read the static files that collectstatic collects: web servers have users of their own.
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o755

LOGIN_URL = "admin:login"
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
