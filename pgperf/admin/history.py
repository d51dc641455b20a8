"""The page of a benchmark's results over its runs, and its files."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from pgperf.access import permissions
from pgperf.admin import pages
from pgperf.admin.run_numbers import number
from pgperf.models import Benchmark, Run
from pgperf.reports import history
from pgperf.reports.csv_results import CSV_TYPE
from pgperf.reports.history import Asked, History, files
from pgperf.reports.history import page as shown
from pgperf.runs.change_text import step_title
from pgperf.runs.reader import same_reader

FILES = ("history.csv", "history.json")
#: Changes that the page tells; the table of all steps and the files have the others.
_MOST_CHANGES = 20


@same_reader()
def history_page(
    page: admin.ModelAdmin, request: HttpRequest, benchmark: Benchmark, *, may_export: bool, may_start: bool
) -> TemplateResponse:
    """The variant and the runs that the query string asks for. Raises Http404 for a malformed one."""
    asked = _asked(request)
    found = history.read(benchmark, _visible(request), asked)
    context: dict[str, Any] = {
        "title": gettext("Results over runs: %s") % benchmark,
        "benchmark": benchmark,
        "found": found,
    }
    context |= _shown(found) if found else _others(request, benchmark)
    if found and not found.has_variant(asked.variant or ""):
        context["unknown"] = asked.variant
    context |= {"may_export": may_export, "may_start": may_start, "chart_js": pages.chart_js()}
    return pages.render(page, request, "admin/pgperf/benchmark/runs.html", context)


def download(request: HttpRequest, name: str, benchmark: Benchmark) -> HttpResponse:
    """All steps of the latest runs as a file. Raises Http404 for an unknown name, and without runs."""
    asked = replace(_asked(request), before=None, variant=None)
    found = history.read(benchmark, _visible(request), asked) if name in FILES else None
    if found is None:
        raise Http404
    headers = {"Content-Disposition": f'attachment; filename="pgperf-{benchmark.name}-{name}"'}
    if name == "history.csv":
        return HttpResponse(files.history_csv(found), content_type=CSV_TYPE, headers=headers)
    text = json.dumps(files.history_json(found), indent=2)
    return HttpResponse(text, content_type="application/json", headers=headers)


def _visible(request: HttpRequest) -> Any:
    return permissions.visible(Run.objects.all(), request.user)


def _others(request: HttpRequest, benchmark: Benchmark) -> dict[str, Any]:
    """Where nothing was found: whether another definition or database has results, and how many have
    no database any more.
    """
    done = _visible(request).filter(benchmark=benchmark, status=Run.Status.DONE)
    return {
        "elsewhere": done.exclude(database=None).exists(),
        "deleted": done.filter(database=None).count(),
    }


def _asked(request: HttpRequest) -> Asked:
    given = request.GET
    return Asked(
        database=_number(given.get("database", "")),
        definition=given.get("definition", ""),
        before=_number(given.get("before", "")),
        variant=given.get("variant", ""),
    )


def _number(text: str) -> int | None:
    return number(text) if text else None


def _shown(found: History) -> dict[str, Any]:
    step = next(iter(found.series), None)
    changes = shown.changes(found)
    line = {"database": found.line.database, "definition": found.line.definition}
    name, charts = (found.name_of(step), shown.charts(found, step)) if step else ("", [])
    return {
        "step_name": name,
        "step_title": step_title(step) if step else "",
        "charts": charts,
        "has_levels": any(curve.get("is_level") for _title, chart in charts for curve in chart["series"]),
        "changes": changes[:_MOST_CHANGES],
        "no_changes": shown.no_changes(found),
        "more_changes": max(0, len(changes) - _MOST_CHANGES),
        "run_table": shown.run_table(found, step) if step else None,
        "step_table": shown.step_table(found),
        "environment": shown.environment_table(found, found.listed),
        "note": shown.note(found),
        "listed": shown.listed(found),
        "choices": shown.choices(found),
        "line": urlencode(line),
        "earlier": _earlier(found, {**line, "variant": name}) if step else "",
    }


def _earlier(found: History, line: dict[str, Any]) -> str:
    """The query of the table's page before this one; "" without one."""
    return urlencode({**line, "before": found.listed[0].pk}) if found.earlier_listed else ""
