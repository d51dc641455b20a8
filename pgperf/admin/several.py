"""The page that compares two to eight runs with a baseline, and its files."""

from collections.abc import Callable

from django.contrib import admin
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext

from pgperf.admin import pages
from pgperf.admin.downloads import REPORT, attached
from pgperf.admin.run_numbers import COLUMNS, number
from pgperf.core.exceptions import NothingToCompare
from pgperf.models import Run
from pgperf.reports.comparison_files import MARKDOWN_TYPE, markdown
from pgperf.reports.html_report import HTML_TYPE, comparison_html
from pgperf.reports.run_json import TERMINAL
from pgperf.reports.several_runs import MOST, SeveralRuns, compare_several
from pgperf.runs.reader import same_reader

#: File name -> what makes the file, and its content type.
FILES: dict[str, tuple[Callable[[SeveralRuns], str], str]] = {
    REPORT: (comparison_html, HTML_TYPE),
    "comparison.md": (markdown, MARKDOWN_TYPE),
}
_CHOICES = 30


@same_reader()
def comparison_page(page: admin.ModelAdmin, request: HttpRequest, *, may_export: bool) -> HttpResponse:
    """The runs that `runs` numbers over the one of `baseline`; a choice of runs without them.

    Raises Http404 for a run that is not there or not visible.
    """
    visible = page.get_queryset(request)
    runs, baseline = _asked(visible, request)
    found, error = _compared(runs, baseline) if runs else (None, "")
    context = {
        "title": gettext("Compare runs"),
        "found": found,
        "error": error,
        "chosen": {run.pk for run in runs},
        "chosen_baseline": found.baseline.run.pk if found else baseline and baseline.pk,
        "choices": _choices(visible, runs),
        "link": link([run.pk for run in runs], found.baseline.run.pk) if found else "",
        "may_export": may_export,
        "chart_js": pages.chart_js(),
    }
    return pages.render(page, request, "admin/pgperf/run/comparison.html", context)


def comparison_file(
    visible: QuerySet[Run], request: HttpRequest, name: str
) -> tuple[HttpResponse, list[Run]]:
    """One file of the comparison, and its runs. Raises Http404 also for runs without a comparison."""
    if name not in FILES:
        raise Http404
    runs, baseline = _asked(visible, request)
    found, error = _compared(runs, baseline)
    if found is None:
        raise Http404(error)
    make, content_type = FILES[name]
    stem = "runs-" + "-".join(str(run.pk) for run in runs)
    return attached(make(found), content_type, stem, name), runs


def link(runs: list[int], baseline: int | None = None) -> str:
    """The query that shows the same comparison again."""
    chosen = f"?runs={','.join(map(str, runs))}"
    return chosen if baseline is None else f"{chosen}&baseline={baseline}"


def _asked(visible: QuerySet[Run], request: HttpRequest) -> tuple[list[Run], Run | None]:
    """The runs by age with the baseline among them, in one query."""
    runs = [number(each) for text in request.GET.getlist("runs") for each in text.split(",") if each]
    base = request.GET.get("baseline") or ""
    wanted = {*runs, *([number(base)] if base else [])}
    if len(wanted) > 10 * MOST:
        raise Http404
    found = {run.pk: run for run in visible.filter(pk__in=wanted).order_by("pk")}
    if found.keys() != wanted:
        raise Http404
    return list(found.values()), found[number(base)] if base else None


def _compared(runs: list[Run], baseline: Run | None) -> tuple[SeveralRuns | None, str]:
    try:
        return compare_several(runs, baseline), ""
    except NothingToCompare as error:
        return None, str(error)


def _choices(visible: QuerySet[Run], runs: list[Run]) -> list[Run]:
    """The latest ended runs, of the same benchmarks as the chosen ones, and these."""
    ended = visible.filter(status__in=TERMINAL).exclude(pk__in=[run.pk for run in runs])
    names = {run.benchmark_name for run in runs}
    alike = ended.filter(benchmark_name__in=names) if names else ended
    return [*reversed(runs), *alike.order_by("-pk").only(*COLUMNS)[:_CHOICES]]
