"""A history as CSV and JSON, with the exact values."""

from typing import Any

import tablib

from pgperf.models import ChangePoint
from pgperf.reports.csv_files import cell_text
from pgperf.reports.history import History, HistoryRun

_POINT = ("us", "low_us", "high_us", "ratio", "low_ratio", "high_ratio", "time_us")
_CHANGE = ("before_us", "after_us", "low_us", "high_us", "before_ratio", "after_ratio")


def history_csv(history: History) -> str:
    """A header line, then a row for each step of each run. `change` is 1 where a level begins,
    `disturbed` where others much disturbed a variant of the step.
    """
    head = ("run_id", "benchmark", "database", "definition_hash", "finished", "variant", "below")
    data = tablib.Dataset(headers=[*head, *_POINT, "change", "disturbed", "notes"])
    begins = {(each.run_id, each.label, each.below) for each in history.changes}
    for step, series in history.series.items():
        for run in history.runs:
            if point := series.get(run.pk):
                lead = (run.benchmark_name, run.database_name, run.definition_hash, _finished(run), *step)
                numbers = (getattr(point, name) for name in _POINT)
                marks = int((run.pk, *step) in begins), int(point.is_disturbed)
                data.append([run.pk, *map(_text, lead), *numbers, *marks, _text(run.notes)])
    return str(data.export("csv"))


def history_json(history: History) -> dict[str, Any]:
    """What `pgperf history --json` prints; null is "not known"."""
    return {
        "benchmark": history.benchmark.name,
        "database": history.line.database_name,
        "definition_hash": history.line.definition,
        "earlier_runs": history.earlier,
        "runs": [_run(history, run) for run in history.runs],
        "series": [
            {
                "variant": step.variant,
                "below": step.below or None,
                "points": [
                    {
                        "run": run,
                        **{name: getattr(point, name) for name in _POINT},
                        "disturbed": point.is_disturbed,
                    }
                    for run, point in series.items()
                ],
            }
            for step, series in history.series.items()
        ],
        "changes": [_change(each) for each in history.changes],
    }


def _run(history: History, run: HistoryRun) -> dict[str, Any]:
    changed = history.environment_changes.get(run.pk, [])
    return {
        "id": run.pk,
        "finished": _finished(run),
        "quick": run.quick,
        "notes": run.notes,
        "environment_changes": [each._asdict() for each in changed],
    }


def _change(change: ChangePoint) -> dict[str, Any]:
    return {
        "variant": change.label,
        "below": change.below or None,
        "run": change.run_id,
        "found_by": change.found_by,
        **{name: getattr(change, name) for name in _CHANGE},
        "layers": change.layers,
    }


def _finished(run: HistoryRun) -> str | None:
    return run.finished_at.isoformat() if run.finished_at else None


def _text(text: str | None) -> str | None:
    return None if text is None else cell_text(text)
