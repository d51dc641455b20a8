"""pgperf's pages in the admin.

pgperf registers them with Django's default site unless PGPERF["ADMIN_AUTOREGISTER"] is False. A
project with its own AdminSite calls `pgperf.admin.register(site)` where it creates that site, in
urls.py or admin.py.
"""

from django.contrib import admin
from django.core.exceptions import ImproperlyConfigured
from django.db import models

from pgperf.admin.benchmarks import BenchmarkAdmin
from pgperf.admin.databases import DatabaseAdmin
from pgperf.admin.pause import PauseAdmin
from pgperf.admin.runs import RunAdmin
from pgperf.admin.schedules import ScheduleAdmin
from pgperf.admin.workers import WorkerAdmin
from pgperf.admin.workloads import WorkloadAdmin
from pgperf.conf import get_settings
from pgperf.models import Benchmark, Database, Pause, Run, Schedule, Worker, Workload

PAGES: dict[type[models.Model], type[admin.ModelAdmin]] = {
    Benchmark: BenchmarkAdmin,
    Database: DatabaseAdmin,
    Workload: WorkloadAdmin,
    Run: RunAdmin,
    Schedule: ScheduleAdmin,
    Worker: WorkerAdmin,
    Pause: PauseAdmin,
}


def register(site: admin.AdminSite) -> None:
    """Register pgperf's pages with `site`. A second call does nothing."""
    for model, page in PAGES.items():
        if not site.is_registered(model):
            site.register(model, page)


def _autoregister() -> bool:
    """The system check reports wrong settings; they must not prevent the site from starting."""
    try:
        return get_settings().ADMIN_AUTOREGISTER
    except ImproperlyConfigured:
        return True


if _autoregister():
    register(admin.site)
