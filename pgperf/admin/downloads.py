"""Downloads of a run: tables and the report, which are built in memory, and the raw slices, which are
streamed.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from pgperf.models import Run
from pgperf.reports import csv_results, html_report
from pgperf.reports.raw_slices import slices_csv

RAW = "slices.csv"
REPORT = "report.html"
#: File name -> the function that builds the file, and its content type.
TABLES: dict[str, tuple[Callable[..., str | bytes], str]] = {
    "variants.csv": (csv_results.variants_csv, csv_results.CSV_TYPE),
    "variants.xlsx": (csv_results.variants_xlsx, csv_results.XLSX_TYPE),
    "comparisons.csv": (csv_results.comparisons_csv, csv_results.CSV_TYPE),
    "comparisons.xlsx": (csv_results.comparisons_xlsx, csv_results.XLSX_TYPE),
    "scaling.csv": (csv_results.scaling_csv, csv_results.CSV_TYPE),
    "rate-searches.csv": (csv_results.rate_searches_csv, csv_results.CSV_TYPE),
    "rate-steps.csv": (csv_results.rate_steps_csv, csv_results.CSV_TYPE),
    "load-hosts.csv": (csv_results.load_hosts_csv, csv_results.CSV_TYPE),
    "means.csv": (csv_results.means_csv, csv_results.CSV_TYPE),
    "steps.csv": (csv_results.steps_csv, csv_results.CSV_TYPE),
    "timeline.csv": (csv_results.timeline_csv, csv_results.CSV_TYPE),
    "top.csv": (csv_results.top_csv, csv_results.CSV_TYPE),
}
#: Every file of a run.
FILES = (*TABLES, REPORT, RAW)


def tables(name: str, stem: str, chosen: Iterable[Run]) -> HttpResponse:
    """One table of all selected runs. Raises KeyError for a name that is not in TABLES."""
    make, content_type = TABLES[name]
    return attached(make(*chosen), content_type, stem, name)


def download(request: HttpRequest, name: str, run: Run) -> HttpResponseBase:
    """One file of one run. Raises Http404 for an unknown name."""
    stem = f"{run.benchmark_name}-{run.pk}"
    if name == RAW:
        lines = slices_csv(run)
        pieces = _async_lines(lines) if isinstance(request, ASGIRequest) else lines
        return StreamingHttpResponse(
            pieces, content_type=csv_results.CSV_TYPE, headers=_attachment(name, stem)
        )
    if name == REPORT:
        return attached(html_report.run_html(run, request.user), html_report.HTML_TYPE, stem, name)
    if name not in TABLES:
        raise Http404
    return tables(name, stem, [run])


def attached(content: str | bytes, content_type: str, stem: str, name: str) -> HttpResponse:
    """A file to keep: browsers do not show it as a page of the site."""
    return HttpResponse(content, content_type=content_type, headers=_attachment(name, stem))


async def _async_lines(lines: Iterator[str]) -> AsyncIterator[str]:
    """Stream under ASGI: Django would collect a synchronous iterator before it sends anything."""
    pull = sync_to_async(lambda: next(lines, None))
    while (piece := await pull()) is not None:
        yield piece


def _attachment(name: str, stem: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="pgperf-{stem}-{name}"'}
