"""A run, or a comparison of runs, as one HTML file that needs nothing else: no script, no network, no
site. Charts are SVG.
"""

import re
from copy import copy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string

from pgperf.analysis.definition_diff import environment_differences
from pgperf.models import Run
from pgperf.reports import number_format
from pgperf.reports.confirmation import tested_title
from pgperf.reports.environment import environment_line, nameless, names_a_role
from pgperf.reports.run_comparison import RunComparison
from pgperf.reports.run_names import named
from pgperf.reports.run_page import result_of
from pgperf.reports.run_rows import RunRows, read
from pgperf.reports.several_runs import SeveralRuns
from pgperf.reports.verdicts import intervention_title

HTML_TYPE = "text/html; charset=utf-8"
#: Fields of a variant's row whose sentences may name somebody.
_WITH_NAMES = ("verdict", "diagnostics", "cpu_account")
_ROLE = re.compile(r'(\bGRANT [\w, ]+ TO )("(?:[^"]|"")*"|\w+)')
_USER = re.compile(r"(\(pid \d+), user [^)]*\)")
_PAUSED = re.compile(r"(because ).*( paused pgperf)", re.DOTALL)
_STYLES = Path(__file__).parent.parent / "static" / "pgperf"


def run_html(run: Run, viewer: Any = None) -> str:
    """All topics of the run's page, the answer first, without links to the site.

    `viewer` as in `run_names`.
    """
    run = _nameless(run)
    return _rendered("run", {
        "title": str(run),
        "run": run,
        "error": _error(run, viewer),
        "duration": _duration(run),
        "measured_on": environment_line(run.environment),
        "confirms": {"variant": tested_title(run), "change": intervention_title(run.intervention)},
        "result": result_of(_nameless_rows(run)),
    })  # fmt: skip


def _error(run: Run, viewer: Any) -> str:
    """That of a failed run as it is; of others without the worker, and without who paused pgperf."""
    text = named(run.error, viewer)
    if run.status == Run.Status.FAILED:
        return text
    text = text.replace(run.worker, "…") if run.worker else text
    return _PAUSED.sub(r"\1…\2", text)


def comparison_html(found: SeveralRuns) -> str:
    """The page that compares the runs, without links to the site."""
    return _rendered("comparison", {"title": found.title, "found": _nameless_comparison(found)})


def _nameless_comparison(found: SeveralRuns) -> SeveralRuns:
    runs = {id(side.run): _nameless(side.run) for side in found.sides}
    sides = {id(side): replace(side, run=runs[id(side.run)]) for side in found.sides}
    pairs = [_nameless_pair(each, runs[id(each.before)], runs[id(each.after)]) for each in found.comparisons]
    return replace(found, baseline=sides[id(found.baseline)], sides=list(sides.values()), comparisons=pairs)


def _nameless(run: Run) -> Run:
    shown = copy(run)
    shown.environment = nameless(run.environment)
    return shown


def _nameless_rows(run: Run) -> RunRows:
    rows = read(run)
    for row in rows.variants:
        for field in _WITH_NAMES:
            setattr(row, field, _without_names(getattr(row, field)))
        row.keep_record()
    return rows


def _without_names(stored: Any) -> Any:
    """JSON without the users of processes, and without the roles of a GRANT that a run advises."""
    if isinstance(stored, dict):
        return {key: _without_names(value) for key, value in stored.items()}
    if isinstance(stored, list):
        return list(map(_without_names, stored))
    return _USER.sub(r"\1)", _ROLE.sub(r"\1…", stored)) if isinstance(stored, str) else stored


def _nameless_pair(compared: RunComparison, before: Run, after: Run) -> RunComparison:
    """Between the runs whose environments name nobody. What their roles may do is left out."""
    found = environment_differences(before.environment, after.environment)
    kept = [each for each in found if not names_a_role(each.what)]
    return replace(compared, before=before, after=after, environment=kept)


def _rendered(name: str, context: dict[str, Any]) -> str:
    template = f"pgperf/report/{name}.html"
    try:
        return render_to_string(template, {**context, "standalone": True, "styles": _styles()})
    except TemplateDoesNotExist as error:
        raise ImproperlyConfigured(
            f"TEMPLATES: no engine finds {error}. Add one of Django's with APP_DIRS, as the admin needs."
        ) from error


def _duration(run: Run) -> str:
    if not (run.started_at and run.finished_at):
        return ""
    return number_format.unbroken(number_format.between(run.started_at, run.finished_at))


@cache
def _styles() -> str:
    """The style sheets of the pages, and what the admin's own would add."""
    return "\n".join((_STYLES / name).read_text() for name in ("pgperf.css", "run.css", "report.css"))
