"""Opens every page of pgperf as a superuser, with pgperf's deprecation warnings as errors.

It prints each problem, and each URL that it does not know. It reads downloads to their end. Run it
by the site's Python in its directory: `python open_pages.py RUN_ID`.
"""

import os
import sys
import warnings
from collections.abc import Iterator
from datetime import time
from itertools import product
from urllib.parse import urlencode

for category in (DeprecationWarning, PendingDeprecationWarning):
    warnings.filterwarnings("error", category=category, module=r"pgperf(\.|\Z)")

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "harbour.settings")
import django  # noqa: E402

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.http.response import HttpResponseBase  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import URLPattern, URLResolver, reverse  # noqa: E402
from harbour.urls import site  # noqa: E402

from pgperf.admin.downloads import RAW, TABLES  # noqa: E402
from pgperf.admin.history import FILES  # noqa: E402
from pgperf.analysis.verdict import Verdict  # noqa: E402
from pgperf.models import Pause, Run, Schedule, Worker  # noqa: E402
from pgperf.transfer.files import FORMATS  # noqa: E402

#: URLs that answer no GET: they accept only POST, need two runs, or no user may add such a row.
SHUT = {
    "pgperf_benchmark_clone", "pgperf_benchmark_estimate", "pgperf_benchmark_statements",
    "pgperf_run_add", "pgperf_run_benchmark", "pgperf_run_cancel", "pgperf_run_comparison_file",
    "pgperf_run_notes", "pgperf_run_pin", "pgperf_worker_add", "pgperf_pause_add",
}  # fmt: skip


def names() -> Iterator[tuple[str, bool]]:
    """Every URL name of pgperf, and whether it needs a primary key."""
    for resolver in site.urls[0]:
        if isinstance(resolver, URLResolver) and str(resolver.pattern).startswith("pgperf/"):
            for pattern in resolver.url_patterns:
                if isinstance(pattern, URLPattern) and pattern.name:
                    yield pattern.name, bool(pattern.pattern.converters)


def pages(run: Run) -> Iterator[str]:
    """The pages to open, with the rows of the run."""
    yield reverse("ops:pgperf_pause_add")  # there is one pause at most
    pause = Pause.objects.create(by="open_pages", since=run.requested_at)
    schedule = Schedule.objects.create(benchmark=run.benchmark, database=run.database, at=time(2, 30))
    rows = {"run": run.pk, "worker": Worker.objects.latest("last_seen").pk, "benchmark": run.benchmark_id,
            "schedule": schedule.pk, "pause": pause.pk, "database": run.database_id,
            "workload": run.benchmark.workloads[0].pk}  # fmt: skip
    yield reverse("ops:index")
    yield reverse("ops:app_list", args=["pgperf"])
    for name, is_of_row in names():
        args = [rows[name.split("_")[1]]] if is_of_row else []
        if name == "pgperf_run_download":
            yield from (reverse(f"ops:{name}", args=[*args, file]) for file in (*TABLES, RAW))
        elif name == "pgperf_benchmark_runs_download":
            yield from (reverse(f"ops:{name}", args=[*args, file]) for file in FILES)
        elif name == "pgperf_run_confirm":
            yield f"{reverse(f'ops:{name}', args=args)}?{urlencode({'variant': to_be_tested(run)})}"
        elif name not in SHUT:
            yield reverse(f"ops:{name}", args=args)
    yield f"{reverse('ops:pgperf_run_compare', args=[run.pk])}?with={run.pk}"
    schedule.delete()
    pause.delete()


def to_be_tested(run: Run) -> str:
    """The label of a variant; its verdict is set to one that a run can test."""
    row = run.variants.filter(layer="django_orm", control=0)[0]
    row.verdict = Verdict("client_cpu", "likely", intervention="lower_layer").to_json()
    row.save()
    return row.label


def open_page(method: str, address: str, **data: str) -> HttpResponseBase:
    """The status must be 200, and the response must be readable to its end."""
    response = getattr(client, method)(address, data)
    if response.status_code != 200 or not response.getvalue():
        print(method, address, response.status_code)
    return response


run = Run.objects.get(pk=int(sys.argv[1]))
client = Client(raise_request_exception=True)
client.force_login(get_user_model()._default_manager.get())
for address in pages(run):
    open_page("get", address)
open_page("post", reverse("ops:pgperf_benchmark_estimate"))
for model, kind in product(("benchmark", "database", "workload"), FORMATS):
    address = reverse(f"ops:pgperf_{model}_export")
    if "Content-Disposition" not in open_page("post", address, format=kind, chosen=""):
        print(address, "returns no file as", kind)
