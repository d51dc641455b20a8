"""The page that compares a run with another one: by default, the previous run of its definition."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext

from pgperf.admin import pages, several
from pgperf.admin.run_numbers import COLUMNS, number
from pgperf.core.exceptions import PgperfError
from pgperf.models import Run
from pgperf.reports.compared_run import previous
from pgperf.reports.run_comparison import RunComparison, compare_runs
from pgperf.reports.run_json import TERMINAL
from pgperf.runs.reader import same_reader

_CHOICES = 20


@same_reader()
def compare_page(page: admin.ModelAdmin, request: HttpRequest, run: Run, *, may_export: bool) -> HttpResponse:
    """Compare `run` with the run whose primary key `with` gives: the older one is the first, with
    `swap` the second.

    Raises Http404 if there is none.
    """
    visible = page.get_queryset(request)
    other, swapped = _other(visible, run, request.GET.get("with", "")), bool(request.GET.get("swap"))
    first, second = _in_order(other, run, swapped=swapped)
    found, error = _compared(first, second)
    context = {
        "title": gettext("Compare %s") % run,
        "run": run,
        "other": other,
        "first": first,
        "second": second,
        "swapped": swapped,
        "found": found,
        "error": error,
        "choices": choices(visible, run, other),
        "link": several.link([first.pk, second.pk], first.pk) if first else "",
        "may_export": may_export,
        "chart_js": pages.chart_js(),
    }
    return pages.render(page, request, "admin/pgperf/run/compare.html", context)


def choices(visible: QuerySet[Run], run: Run, other: Run | None) -> list[Run]:
    """The latest ended runs of the same benchmark, and the run that is shown."""
    ended = visible.filter(status__in=TERMINAL, benchmark_name=run.benchmark_name)
    latest = list(ended.exclude(pk=run.pk).order_by("-pk").only(*COLUMNS)[:_CHOICES])
    return latest if other is None or other in latest else [other, *latest]


def _other(visible: QuerySet[Run], run: Run, given: str) -> Run | None:
    if not given:
        return previous(visible, run)
    other = visible.filter(pk=number(given)).first()
    if other is None:
        raise Http404
    return other


def _in_order(other: Run | None, run: Run, *, swapped: bool) -> tuple[Run | None, Run]:
    if other is None:
        return None, run
    first, second = sorted((other, run), key=lambda each: each.pk, reverse=swapped)
    return first, second


def _compared(before: Run | None, after: Run) -> tuple[RunComparison | None, str]:
    if before is None:
        return None, ""
    try:
        return compare_runs(before, after), ""
    except PgperfError as error:
        return None, str(error)
