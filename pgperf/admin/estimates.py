"""What a run of a form's benchmark would take, while the user fills the form in: JSON."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.utils.translation import gettext as _

from pgperf.access import permissions
from pgperf.admin.measure_forms import KINDS, Measured, filled
from pgperf.core.delayed_routes import apart
from pgperf.models import Benchmark, Database, Workload
from pgperf.reports.estimate import estimate_json, missing_json, refusal_json
from pgperf.reports.preview import preview

#: A benchmark runs the same without them.
_WORDS = {"name", "title", "description", "groups", "restricted"}


def estimate_view(page: admin.ModelAdmin, request: HttpRequest) -> HttpResponse:
    """POST with the fields of the form of a benchmark; with `kind`, of *Measure a query of mine*.

    Nothing is stored. A query's text and values would be in the log of a web server after a GET, and
    too long for some. 403 without the permission to add or change a benchmark, and that of the kind.
    """
    if not (page.has_add_permission(request) or page.has_change_permission(request)):
        raise PermissionDenied
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    name = request.POST.get("kind", "")
    if name in KINDS:
        if not permissions.has_all(request.user, filter(None, (KINDS[name].permission,))):
            raise PermissionDenied
        found = estimate_of(Measured(request.user, name, KINDS[name], request.POST, is_sent=True))
    else:
        form = page.get_form(request)(request.POST)
        form.is_valid()  # fills its instance
        found = _estimate(form, form.cleaned_data.get("workloads", []), request.user)
    return JsonResponse(found)


def estimate_of(asked: Measured) -> dict[str, Any]:
    """The estimate of a query of mine. Of the query, only what names it changes the estimate."""
    workload = filled(asked.workload)
    names_it = workload[asked.kind.usual[0]]
    if not names_it.value():
        return missing_json(names_it.label)
    workload.is_valid()  # fills its instance
    return _estimate(filled(asked.benchmark), [workload.instance], asked.user)


def _estimate(form: Any, workloads: Sequence[Workload], user: Any) -> dict[str, Any]:
    """`workloads`: those of the form's benchmark."""
    for name, messages in form.errors.items():
        if name not in _WORDS:
            label = str(form.fields[name].label) if name in form.fields else ""
            if form.has_error(name, "required"):
                return missing_json(label)
            return refusal_json(": ".join(filter(None, [label, " ".join(messages)])))
    database = _database(form.instance, user)
    if database is None:
        return refusal_json(_("There is no database to run on."))
    return estimate_json(preview(form.instance, database, quick=False, workloads=workloads))


def _database(benchmark: Benchmark, user: Any) -> Database | None:
    """The benchmark's usual database; else the first one that has one of its routes."""
    if benchmark.database:
        return benchmark.database
    databases = permissions.visible(Database.objects.all(), user)
    names = [apart(route)[0] for route in benchmark.routes]
    return databases.filter(targets__route__in=names, targets__enabled=True).first() or databases.first()
