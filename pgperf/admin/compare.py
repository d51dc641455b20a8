"""The page that compares a run with another one: by default, the previous run of its definition."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext

from pgperf.admin import pages
from pgperf.core.exceptions import PgperfError
from pgperf.models import Run
from pgperf.reports.compared_run import previous
from pgperf.reports.run_comparison import RunComparison, compare_runs
from pgperf.reports.run_json import TERMINAL

_CHOICES = 20
#: The columns that a choice of runs shows.
_NAME = ("benchmark_name", "requested_at", "quick", "database_name")
_DIGITS = 18


def compare_page(page: admin.ModelAdmin, request: HttpRequest, run: Run) -> HttpResponse:
    """Compare `run` with the run whose primary key `with` gives.

    Raises Http404 if there is none.
    """
    visible = page.get_queryset(request)
    other = _other(visible, run, request.GET.get("with", ""))
    found, error = _compared(other, run)
    context = {
        "title": gettext("Compare %s") % run,
        "run": run,
        "other": other,
        "found": found,
        "error": error,
        "choices": choices(visible, run, other),
        "chart_js": pages.chart_js(),
    }
    return pages.render(page, request, "admin/pgperf/run/compare.html", context)


def choices(visible: QuerySet[Run], run: Run, other: Run | None) -> list[Run]:
    """The latest ended runs of the same benchmark, and the run that is shown."""
    ended = visible.filter(status__in=TERMINAL, benchmark_name=run.benchmark_name)
    latest = list(ended.exclude(pk=run.pk).order_by("-pk").only(*_NAME)[:_CHOICES])
    return latest if other is None or other in latest else [other, *latest]


def _other(visible: QuerySet[Run], run: Run, number: str) -> Run | None:
    if not number:
        return previous(visible, run)
    if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS):
        raise Http404
    other = visible.filter(pk=int(number)).first()
    if other is None:
        raise Http404
    return other


def _compared(before: Run | None, after: Run) -> tuple[RunComparison | None, str]:
    if before is None:
        return None, ""
    try:
        return compare_runs(before, after), ""
    except PgperfError as error:
        return None, str(error)
