"""Opens every page of pgperf as a superuser of the site, with deprecations of ours as errors; prints what was wrong.

Run by the site's own Python in its directory: `python look.py RUN_ID`.
"""

import os
import sys
import warnings

for category in (DeprecationWarning, PendingDeprecationWarning):
    warnings.filterwarnings("error", category=category, module=r"pgperf(\.|\Z)")

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "harbour.settings")
import django  # noqa: E402

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import reverse  # noqa: E402

from pgperf.models import Benchmark, Run  # noqa: E402

run = Run.objects.get(pk=int(sys.argv[1]))
client = Client(raise_request_exception=True)
client.force_login(get_user_model()._default_manager.get())
addresses = [reverse("ops:index"), reverse("ops:app_list", args=["pgperf"])]
for model in ("benchmark", "database", "workload", "run", "worker"):
    addresses += [reverse(f"ops:pgperf_{model}_changelist")]
for model in ("benchmark", "database", "workload"):
    addresses += [reverse(f"ops:pgperf_{model}_add")]
addresses += [
    reverse("ops:pgperf_run_change", args=[run.pk]),
    reverse("ops:pgperf_run_history", args=[run.pk]),
]
addresses += [
    reverse("ops:pgperf_run_download", args=[run.pk, name]) for name in ("variants.csv", "variants.xlsx")
]
for benchmark in Benchmark.objects.filter(pk=run.benchmark_id):
    addresses += [reverse("ops:pgperf_benchmark_change", args=[benchmark.pk])]
    addresses += [reverse("ops:pgperf_benchmark_run", args=[benchmark.pk])]
for address in addresses:
    response = client.get(address)
    if response.status_code != 200:
        print(address, response.status_code)
