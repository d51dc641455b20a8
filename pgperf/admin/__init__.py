"""pgperf's pages in the admin. A site with its own AdminSite calls `pgperf.admin.register(site)`."""

from django.contrib import admin
from django.db import models

from pgperf.admin.benchmarks import BenchmarkAdmin
from pgperf.admin.databases import DatabaseAdmin
from pgperf.admin.runs import RunAdmin
from pgperf.admin.workers import WorkerAdmin
from pgperf.admin.workloads import WorkloadAdmin
from pgperf.models import Benchmark, Database, Run, Worker, Workload

PAGES: dict[type[models.Model], type[admin.ModelAdmin]] = {
    Benchmark: BenchmarkAdmin,
    Database: DatabaseAdmin,
    Workload: WorkloadAdmin,
    Run: RunAdmin,
    Worker: WorkerAdmin,
}


def register(site: admin.AdminSite) -> None:
    """Show pgperf in `site`. Registering twice is harmless."""
    for model, page in PAGES.items():
        if not site.is_registered(model):
            site.register(model, page)


register(admin.site)
