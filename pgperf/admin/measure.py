"""*Measure a query of mine*: from a query that exists to its first run, in two pages.

The first page shows what there is to measure. The second asks for what has no default, shows what
the run takes, and starts it. Its state is in its address and its form: a workload, its benchmark and
the run are saved together by the last click, or not at all.
"""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, router, transaction
from django.forms import BoundField
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.utils.translation import gettext

from pgperf.access import permissions
from pgperf.admin import audit, pages
from pgperf.admin.estimates import estimate_of
from pgperf.admin.form_token import tell_of_earlier
from pgperf.admin.measurable import measurable
from pgperf.admin.measure_forms import KINDS, Measured
from pgperf.admin.start_run import after, requested
from pgperf.core.exceptions import PgperfError
from pgperf.db import restriction
from pgperf.models import Benchmark, Run, Workload
from pgperf.reports import statement_lists
from pgperf.reports.run_json import live_workers, worker_command
from pgperf.runs import state


def measure_view(page: admin.ModelAdmin, request: HttpRequest) -> HttpResponse:
    """GET shows what there is to measure; with `kind`, the page that starts the run. POST starts it.

    403 without the permissions of MEASURE, and of the kind.
    """
    if not permissions.has_all(request.user, permissions.MEASURE):
        raise PermissionDenied
    if request.method not in ("GET", "HEAD", "POST"):
        return HttpResponseNotAllowed(["GET", "POST"])
    data = request.POST if request.method == "POST" else request.GET
    kind = KINDS.get(data.get("kind", ""))
    if kind is None:
        return _choice(page, request)
    if kind.permission and not request.user.has_perm(kind.permission):
        raise PermissionDenied
    asked = Measured(request.user, data["kind"], kind, data, is_sent=request.method == "POST")
    if asked.values and not asked.values.sql:
        page.message_user(request, gettext("This statement is not stored any more."), messages.WARNING)
        return _choice(page, request)
    if asked.is_sent:
        run = _known(page, request, asked) or _start(page, request, asked)
        if run is not None:
            return HttpResponseRedirect(after(page, request, run))
    return pages.render(page, request, "admin/pgperf/benchmark/measure.html", _context(page, asked))


def _start(page: admin.ModelAdmin, request: HttpRequest, asked: Measured) -> Run | None:
    """Save workload, benchmark and run together; None with an error on a form, and nothing saved."""
    if not asked.is_valid():
        return _known(page, request, asked)  # a double click: the other one has taken the name since
    try:
        with transaction.atomic(using=router.db_for_write(Benchmark)):
            return requested(page, request, _saved(page, request, asked), asked.start)
    except PgperfError as error:
        asked.start.add_error(None, str(error))
    except IntegrityError:
        if known := _known(page, request, asked):
            return known  # a double click: the other one was first
        asked.workload.add_error("name", Workload._meta.get_field("name").error_messages["unique"])
    return None


def _known(page: admin.ModelAdmin, request: HttpRequest, asked: Measured) -> Run | None:
    """The run of an earlier click on the same page, with a message."""
    run = asked.known_run()
    if run is not None:
        tell_of_earlier(page, request, run)
    return run


def _saved(page: admin.ModelAdmin, request: HttpRequest, asked: Measured) -> Benchmark:
    """The new benchmark with its workload; both are restricted as the database is."""
    workload = asked.workload.save()
    benchmark = asked.benchmark.save_with(workload)
    marks = restriction.marked(asked.start.cleaned_data["database"])
    for row in (workload, benchmark):
        if marks:
            restriction.restrict_to(row, restriction.shared_groups(marks))
        audit.log_added(page, request, row, "Added to measure a query.")
    return benchmark


def _choice(page: admin.ModelAdmin, request: HttpRequest) -> HttpResponse:
    statements = statement_lists.stored(request.user)
    context = {
        "title": gettext("Measure a query of mine"),
        "found": measurable(request.user),
        "may_ask": request.user.has_perm(permissions.MANAGE_TARGETS),
        "statements": statements,
        "wait": any(each.asked_at for each in statements),
        "address": pages.url(page, "pgperf_benchmark_measure"),
    }
    return pages.render(page, request, "admin/pgperf/benchmark/measure_choice.html", context)


def _is_given(field: BoundField) -> bool:
    return bool(field.field.has_changed(field.field.initial, field.value()))


def _context(page: admin.ModelAdmin, asked: Measured) -> dict[str, Any]:
    rarer = [asked.workload[name] for name in asked.kind.rarer]
    return {
        "title": gettext("Measure a query of mine"),
        "asked": asked,
        "fields": asked.values.values
        if asked.values
        else [asked.workload[name] for name in asked.kind.usual],
        "rarer": rarer,
        "unfold": any(field.errors or _is_given(field) for field in rarer),
        "other_errors": asked.other_errors(),
        "has_errors": any(form.errors for form in asked.forms),
        "production": asked.start.fields["database"].queryset.filter(production=True),  # type: ignore[attr-defined]
        "estimate": estimate_of(asked),
        "estimate_url": pages.url(page, "pgperf_benchmark_estimate"),
        "workers": live_workers(),
        "worker_command": worker_command(),
        "paused": state.pause(),
    }
