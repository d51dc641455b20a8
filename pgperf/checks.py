"""System checks: what `manage.py check` and `doctor` say about pgperf's installation. No I/O beyond file names.

E001 settings are wrong; E002 import_export is not installed as an app; E003 PGPERF["SECRETS_DIR"] is no directory;
W001 the C client is not built; W002 no driver that Django could use; W003 Celery has no broker.
"""

import importlib.util
from pathlib import Path
from typing import Any

from celery import current_app
from django.apps import apps
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured

from pgperf import layers
from pgperf.conf import Settings, get_settings

TAG = "pgperf"


@register(TAG)
def check_settings(**_: Any) -> list[CheckMessage]:
    try:
        settings = get_settings()
    except ImproperlyConfigured as error:
        return [Error(str(error), hint="See docs/reference.md for every key of PGPERF.", id="pgperf.E001")]
    return [*_secrets_dir(settings), *_c_client(settings)]


@register(TAG)
def check_apps(**_: Any) -> list[CheckMessage]:
    if apps.is_installed("import_export"):
        return []
    return [Error("pgperf exports through django-import-export, which is not installed as an app.",
                  hint='Add "import_export" to INSTALLED_APPS.', id="pgperf.E002")]  # fmt: skip


@register(TAG)
def check_drivers(**_: Any) -> list[CheckMessage]:
    if any(importlib.util.find_spec(name) for name in ("psycopg", "psycopg2")):
        return []
    return [Warning("Neither psycopg nor psycopg2 is installed: nothing can be measured in this environment.",
                    hint="pip install psycopg", id="pgperf.W002")]  # fmt: skip


@register(TAG)
def check_broker(**_: Any) -> list[CheckMessage]:
    """Celery takes amqp://localhost when nothing is configured, and then a run waits for nobody."""
    if current_app.conf.broker_url or current_app.conf.broker_write_url:
        return []
    return [Warning("Celery has no broker: runs asked for in the admin cannot be sent.",
                    hint="Make the site's Celery application, set its broker_url, import it in the project's "
                         "__init__.py. `pgperf run` without --queue needs none.", id="pgperf.W003")]  # fmt: skip


def _secrets_dir(settings: Settings) -> list[CheckMessage]:
    if not settings.SECRETS_DIR or Path(settings.SECRETS_DIR).is_dir():
        return []
    return [Error(f"PGPERF['SECRETS_DIR'] is no directory: {settings.SECRETS_DIR}",
                  hint="Make it, or leave the setting out.", id="pgperf.E003")]  # fmt: skip


def _c_client(settings: Settings) -> list[CheckMessage]:
    if layers.c_client(settings.BUILD_DIR):
        return []
    return [Warning("The C client is not built: ladders start at the driver instead of libpq.",
                    hint="manage.py pgperf build", id="pgperf.W001")]  # fmt: skip
