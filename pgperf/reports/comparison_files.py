"""A comparison of several runs as Markdown and as JSON."""

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from pgperf.reports.markdown_table import cells, escaped, table
from pgperf.reports.run_comparison import run_comparison_json
from pgperf.reports.several_runs import SeveralRuns
from pgperf.reports.table import Table

MARKDOWN_TYPE = "text/markdown; charset=utf-8"


def markdown(found: SeveralRuns) -> str:
    """The tables of the page as pipe tables, the differences around the runs first."""
    shown = (part if isinstance(part, str) else table(part) for part in _parts(found))
    return "\n\n".join(filter(None, shown)) + "\n"


def several_json(found: SeveralRuns, fail_on: float | None = None) -> dict[str, Any]:
    """What `pgperf compare --json` prints of three runs or more."""
    return {
        "baseline": found.baseline.run.pk,
        "runs": [run.pk for run in found.runs],
        "refused": [{"run": run.pk, "reason": reason} for run, reason in found.refused],
        "comparisons": [run_comparison_json(each, fail_on) for each in found.comparisons],
    }


def _parts(found: SeveralRuns) -> Iterator[str | Table]:
    yield f"### {escaped(found.title)}"
    yield _items(found.cautions)
    for run, sentences in found.headlines:
        yield f"**{escaped(str(run))}**\n\n" + _items(sentences)
    if found.differences:
        yield found.differences
    if steps := found.step_effects:
        yield from (steps, found.step_note)
    yield from found.effects
    yield found.times
    yield from found.scatter
    apart = [*found.one_sided, *found.refusals]
    yield f"**{_('What cannot be compared')}**\n\n{_items(apart)}" if apart else ""
    yield _items(found.notes)


def _items(texts: list[str]) -> str:
    return "\n".join(f"- {text}" for text in cells(texts))
