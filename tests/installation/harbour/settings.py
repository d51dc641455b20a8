"""Settings: a custom user model, three databases with a router, a custom AdminSite, a strict
policy.

Celery acknowledges late, limits the time of tasks and routes them to its own queue. Environment
variables HARBOUR_* give the addresses.
"""

import json
import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
DEBUG = False
SECRET_KEY = "third-party-site"
ALLOWED_HOSTS = ["127.0.0.1", "testserver"]
ROOT_URLCONF = "harbour.urls"

INSTALLED_APPS = [
    "harbour.people",
    "harbour.freight",
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "import_export",
    "pgperf",
]

MIDDLEWARE = [
    "harbour.policy.strict",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
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

DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": BASE_DIR / "harbour.sqlite3"},
    "measurements": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": BASE_DIR / "measurements.sqlite3",
        "OPTIONS": {"transaction_mode": "IMMEDIATE"},
    },
    "warehouse": {
        "ENGINE": "django.db.backends.postgresql",
        **json.loads(os.environ["HARBOUR_WAREHOUSE"]),
    },
}
DATABASE_ROUTERS = ["harbour.router.Router"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
AUTH_USER_MODEL = "people.Person"

CELERY_BROKER_URL = os.environ["HARBOUR_REDIS"]
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = 4
CELERY_TASK_SOFT_TIME_LIMIT = 3
CELERY_TASK_DEFAULT_QUEUE = "harbour"
CELERY_TASK_ROUTES = {"*": {"queue": "harbour"}}

PGPERF = {
    "BUILD_DIR": os.environ["HARBOUR_BUILD_DIR"],
    "PG_CONFIG": os.environ["HARBOUR_PG_CONFIG"],
    "ADMIN_AUTOREGISTER": False,
}

USE_TZ = os.environ["HARBOUR_USE_TZ"] == "1"
TIME_ZONE = "Asia/Kathmandu"  # 5:45 ahead of UTC: an hour mixed up shows
LANGUAGE_CODE = "en"
USE_I18N = True

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "collected"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"},
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
