"""System checks: what `manage.py check` and `doctor` say about pgperf's installation.
docs/reference.md lists the ids.

No I/O beyond file names, but for the check for a worker: it asks the database, and so runs where
Django's database checks do (`check --database`, `migrate`; any check from Django 6.1 on).
"""

import importlib
import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from celery import current_app
from django.apps import apps
from django.conf import settings as site_settings
from django.contrib.admin.sites import all_sites
from django.contrib.staticfiles import finders
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connections, router
from django.urls import NoReverseMatch, reverse

from pgperf.conf import Settings, get_settings
from pgperf.core import layers
from pgperf.core.documents import document
from pgperf.db import client_environments, first_release
from pgperf.db.allowed_hosts import AllowedHost
from pgperf.db.web_urls import WebUrl
from pgperf.install import launch
from pgperf.models import Run
from pgperf.reports.run_json import live_workers, worker_command
from pgperf.runs import broker
from pgperf.workloads import discovery

TAG = "pgperf"
CHART_JS = "pgperf/vendor/chart.umd.js"


@register(TAG)
def check_settings(**_: Any) -> list[CheckMessage]:
    try:
        settings = get_settings()
    except ImproperlyConfigured as error:
        hint = f"See {document('reference.md')} for every key of PGPERF."
        return [Error(str(error), hint=hint, id="pgperf.E001")]
    return [
        *_secrets_dir(settings),
        *_interpreters(settings),
        *_environments(),
        *_allowed_hosts(settings),
        *_web_urls(settings),
        *_allowed_functions(settings),
        *_refused_models(settings),
        *_c_client(settings),
    ]


@register(TAG)
def check_apps(**_: Any) -> list[CheckMessage]:
    if apps.is_installed("import_export"):
        return []
    return [Error("pgperf exports through django-import-export, which is not installed as an app.",
                  hint='Add "import_export" to INSTALLED_APPS.', id="pgperf.E002")]  # fmt: skip


@register(TAG)
def check_workloads(**_: Any) -> list[CheckMessage]:
    """The site's own workloads: a module that cannot be imported costs its own, and nothing else."""
    return [Warning(f"{failure}.", hint="Its workloads are not registered until it can be.", id="pgperf.W014")
            for failure in discovery.discover()]  # fmt: skip


@register(TAG)
def check_drivers(**_: Any) -> list[CheckMessage]:
    if any(importlib.util.find_spec(name) for name in layers.DJANGO_DRIVERS):
        return []
    return [Warning("Neither psycopg nor psycopg2 is installed: nothing can be measured in this environment.",
                    hint="pip install psycopg", id="pgperf.W002")]  # fmt: skip


@register(TAG)
def check_celery(**_: Any) -> list[CheckMessage]:
    """Without one of the site's own, Celery makes an application for amqp://localhost, and no
    worker receives the runs. The package of the URLs may import it, and Django runs its checks in no
    order.
    """
    with suppress(Exception):  # what is wrong with the URLs, Django's own check says
        importlib.import_module(site_settings.ROOT_URLCONF)
    if current_app.main == "default":
        return [Warning("The site has no Celery application: runs asked for in the admin cannot be sent.",
                        hint=f"Make one and import it in the project's __init__.py, as {document('install.md')} shows. "
                             "`pgperf run` without --queue needs none.", id="pgperf.W004")]  # fmt: skip
    if not (current_app.conf.broker_url or current_app.conf.broker_write_url):
        return [Warning("Celery has no broker: runs asked for in the admin cannot be sent.",
                        hint="Set CELERY_BROKER_URL (or broker_url, as your application reads it). "
                             "`pgperf run` without --queue needs none.", id="pgperf.W003")]  # fmt: skip
    try:
        return [*_pool(), *_queue()]
    except ImproperlyConfigured:  # what is wrong is told already
        return []


@register(TAG, Tags.database)
def check_tables(**given: Any) -> list[CheckMessage]:
    """Tables from before the first release cannot be migrated: `migrate` stops here, before it
    fails half-way.
    """
    found: list[CheckMessage] = []
    for alias in given.get("databases") or []:
        try:
            if router.allow_migrate_model(alias, Run) and first_release.is_unreleased(connections[alias]):
                found.append(_unreleased(alias))
        except DatabaseError:
            continue
    return found


def _unreleased(alias: str) -> CheckMessage:
    statements = "\n".join(first_release.removal(connections[alias]))
    return Error(f"The tables of pgperf in database {alias!r} were made by a version from before the first release.",
                 hint=f"No migration leads from them. Remove them with all results and make them anew. Run "
                      f"`manage.py dbshell --database {alias}` and enter\n{statements}\n"
                      f"Then run `manage.py migrate --database {alias}`.", id="pgperf.E005")  # fmt: skip


@register(TAG)
def check_sqlite(**_: Any) -> list[CheckMessage]:
    """A transaction of SQLite's default mode reads first. It fails at once where another process has
    written before its own first write; one that begins by locking waits instead.
    """
    alias = router.db_for_write(Run)
    connection = connections[alias]
    mode = str(connection.settings_dict["OPTIONS"].get("transaction_mode", ""))
    if connection.vendor != "sqlite" or mode.upper() in ("IMMEDIATE", "EXCLUSIVE"):
        return []
    return [Warning(f"pgperf's tables are in SQLite (database {alias!r}), where a page fails with "
                    '"database is locked" if a worker writes at the same time.',
                    hint=f'Set DATABASES[{alias!r}]["OPTIONS"] = {{"transaction_mode": "IMMEDIATE"}}.',
                    id="pgperf.W015")]  # fmt: skip


@register(TAG, Tags.database)
def check_worker(**given: Any) -> list[CheckMessage]:
    """A live worker is needed only while runs are queued; without tables none is."""
    alias = router.db_for_read(Run)
    if alias not in (given.get("databases") or []):
        return []
    try:
        if Run._meta.db_table not in connections[alias].introspection.table_names():
            return []
        if not Run.objects.filter(status=Run.Status.QUEUED).exists() or live_workers():
            return []
    except (DatabaseError, ImproperlyConfigured):
        return []
    return [Warning("Runs wait in pgperf's queue, and no worker is alive that takes them.",
                    hint=f"Start one in the site's directory: {worker_command()}", id="pgperf.W005")]  # fmt: skip


@register(TAG, Tags.staticfiles)
def check_static(**_: Any) -> list[CheckMessage]:
    if not apps.is_installed("django.contrib.staticfiles"):
        return [Warning("django.contrib.staticfiles is not installed: pgperf's pages have no styles and no charts.",
                        hint='Add "django.contrib.staticfiles" to INSTALLED_APPS.', id="pgperf.W008")]  # fmt: skip
    if finders.find(CHART_JS):
        return []
    return [Warning(f"Chart.js was not found ({CHART_JS}): pages show tables without charts.",
                    hint="Install pgperf from its wheel, which brings it; in a checkout run `make build`. Then "
                         "`manage.py collectstatic`, where the site serves collected files.",
                    id="pgperf.W009")]  # fmt: skip


@register(TAG, Tags.admin)
def check_admin(**_: Any) -> list[CheckMessage]:
    """Importing the URLs first: many sites make their own AdminSite there."""
    if not apps.is_installed("django.contrib.admin"):
        return [Warning("django.contrib.admin is not installed: pgperf has no pages, only commands.",
                        hint='Add "django.contrib.admin" to INSTALLED_APPS.', id="pgperf.W010")]  # fmt: skip
    if any(_is_shown(name) for name in ["admin", *(site.name for site in all_sites)]):
        return []
    return [Warning("No admin site that has a URL shows pgperf.",
                    hint="Put admin.site.urls into the site's urls.py, or call pgperf.admin.register(site) with the "
                         "AdminSite that is there.", id="pgperf.W011")]  # fmt: skip


def _is_shown(site: str) -> bool:
    """URLs that cannot be imported are for Django's own checks to tell."""
    try:
        return bool(reverse(f"{site}:pgperf_run_changelist"))
    except NoReverseMatch:
        return False
    except Exception:
        return True


def _secrets_dir(settings: Settings) -> list[CheckMessage]:
    if not settings.SECRETS_DIR or Path(settings.SECRETS_DIR).is_dir():
        return []
    return [Error(f"PGPERF['SECRETS_DIR'] is not a directory: {settings.SECRETS_DIR}",
                  hint="Make it, or leave the setting out.", id="pgperf.E003")]  # fmt: skip


def _interpreters(settings: Settings) -> Iterator[CheckMessage]:
    for layer, python in settings.INTERPRETERS.items():
        if layer not in layers.LAYERS or not layers.LAYERS[layer].may_run_elsewhere:
            free = ", ".join(name for name, layer in layers.LAYERS.items() if layer.may_run_elsewhere)
            yield Error(f"PGPERF['INTERPRETERS'] names {layer!r}, which has no driver of its own to choose.",
                        hint=f"Choose from {free}. Django's layers run in the site's own Python.",
                        id="pgperf.E004")  # fmt: skip
        elif not shutil.which(python):
            yield Error(f"PGPERF['INTERPRETERS'][{layer!r}] is not an executable file: {python}",
                        hint="Give the path of a Python that has the driver, or leave it out and run "
                             "`manage.py pgperf build --drivers`.", id="pgperf.E004")  # fmt: skip


def _environments() -> Iterator[CheckMessage]:
    for refusal in client_environments.refusals():
        yield Error(f"PGPERF['ENVIRONMENTS']: {refusal}.",
                    hint='Write "name": {"python": "/opt/name/bin/python"}, with "settings" and "variables" where '
                         f"they differ; {document('environments.md')} has examples.", id="pgperf.E011")  # fmt: skip
    for each in client_environments.configured().values():
        if not shutil.which(each.python):
            yield Error(f"PGPERF['ENVIRONMENTS'][{each.name!r}] is not an executable file: {each.python}",
                        hint="Give the path of a Python that has pgperf, Django and a driver. `manage.py pgperf "
                             "doctor` shows what each has.", id="pgperf.E012")  # fmt: skip


def _allowed_hosts(settings: Settings) -> Iterator[CheckMessage]:
    for text in settings.ALLOWED_HOSTS:
        try:
            AllowedHost.parse(str(text))
        except ValueError as error:
            yield Error(f"PGPERF['ALLOWED_HOSTS']: {error}.",
                        hint="Write a host name, an address or a socket's directory. A port may follow: "
                             "'db.example:6432', '[::1]:6432', 'db.example:*' for any.", id="pgperf.E008")  # fmt: skip


def _web_urls(settings: Settings) -> Iterator[CheckMessage]:
    for text in settings.WEB_URLS:
        try:
            WebUrl.parse(text)
        except ValueError as error:
            yield Error(f"PGPERF['WEB_URLS']: {error}.",
                        hint="Write scheme, name and port: 'https://site.example', 'http://127.0.0.1:8000'. The site's"
                             " prefix may follow: 'https://site.example/shop'.",
                        id="pgperf.E010")  # fmt: skip


def _allowed_functions(settings: Settings) -> Iterator[CheckMessage]:
    for name in settings.ALLOWED_FUNCTIONS:
        schema, dot, function = name.partition(".")
        if not (schema and dot and function) or schema == "pg_catalog":
            yield Error(f"PGPERF['ALLOWED_FUNCTIONS'] names {name!r}, which is not a function of the site.",
                        hint='Write schema.name as pg_proc has it, for example "shop.next_price". Functions of '
                             "pg_catalog cannot be allowed.", id="pgperf.E006")  # fmt: skip


def _refused_models(settings: Settings) -> Iterator[CheckMessage]:
    """A name that is misspelled would refuse nothing."""
    for setting, names in (
        ("REFUSED_MODELS", settings.REFUSED_MODELS),
        ("REFUSED_FIELDS", settings.REFUSED_FIELDS),
    ):
        for name in names:
            if not (_is_model(name) if setting == "REFUSED_MODELS" else _is_field(name)):
                yield Error(f"PGPERF[{setting!r}] names {name!r}, which this site does not have.",
                            hint='Write "app.Model", or "app.*" for all models of an app, into REFUSED_MODELS, and '
                                 '"app.Model.field" into REFUSED_FIELDS.', id="pgperf.E007")  # fmt: skip


def _is_model(name: str) -> bool:
    app, _dot, model = name.partition(".")
    try:
        return bool(apps.get_app_config(app) if model == "*" else apps.get_model(name))
    except (LookupError, ValueError):
        return False


def _is_field(name: str) -> bool:
    model, _dot, field = name.rpartition(".")
    return (
        not model.endswith("*")
        and _is_model(model)
        and any(each.name.lower() == field.lower() for each in apps.get_model(model)._meta.get_fields())
    )


def _c_client(settings: Settings) -> Iterator[CheckMessage]:
    if launch.c_client(settings.BUILD_DIR):
        return
    yield Warning("The C client is not built: ladders start at the driver instead of libpq.",
                  hint="manage.py pgperf build", id="pgperf.W001")  # fmt: skip
    if not shutil.which(settings.CC):
        yield Warning(f"There is no C compiler to build it with: {settings.CC!r} is not a program here.",
                      hint="Install one (Debian: apt install gcc libc6-dev), or name yours in PGPERF['CC'].",
                      id="pgperf.W006")  # fmt: skip
    pg_config = settings.PG_CONFIG or "pg_config"
    if not shutil.which(pg_config):
        yield Warning(f"There is no libpq to build it with: {pg_config!r} is not a program here.",
                      hint="Install libpq's headers (Debian: apt install libpq-dev), or name a pg_config in "
                           "PGPERF['PG_CONFIG'].", id="pgperf.W007")  # fmt: skip


def _pool() -> Iterator[CheckMessage]:
    """Only what is configured; a worker's own --pool is refused when it starts
    (pgperf.worker.heartbeat).
    """
    pool = str(current_app.conf.worker_pool)
    if any(name in pool for name in broker.UNFIT_POOLS):
        yield Warning(f"Celery's worker_pool is {pool}, which cannot measure: its threads stop while a driver waits.",
                      hint=f"Start the worker of pgperf's queue with --pool prefork: {worker_command()}",
                      id="pgperf.W012")  # fmt: skip


def _queue() -> Iterator[CheckMessage]:
    queue, conf = get_settings().QUEUE, current_app.conf
    if not conf.task_create_missing_queues and queue not in current_app.amqp.queues:
        yield Warning(f"Celery has no queue named {queue!r} and may make none (task_create_missing_queues).",
                      hint=f"Add Queue({queue!r}) to task_queues, or name a queue you have in PGPERF['QUEUE'].",
                      id="pgperf.W013")  # fmt: skip
