"""The stored changes of benchmarks' headline figures, of the runs that a viewer may see."""

from collections.abc import Collection, Mapping

from pgperf.models import ChangePoint, Run
from pgperf.reports.dashboard.viewer import Viewer
from pgperf.runs.seen_changes import of_seen_runs

#: Columns of what has the runs of a benchmark's one definition on one database.
LINE = ("benchmark_id", "database_id", "definition_hash")
_OF_RUN = (*LINE, "benchmark_name", "database_name", "requested_at", "finished_at")
_OF_CHANGE = ("label", "below", "found_by", "before_us", "after_us", "layers")

Line = tuple[int | None, int | None, str]


def line_of(run: Run) -> Line:
    return run.benchmark_id, run.database_id, run.definition_hash


def headline_changes(viewer: Viewer, lines: Collection[Line]) -> Mapping[Line, list[ChangePoint]]:
    """Of each line the changes that the viewer may know, the oldest first, in two queries."""
    if not lines:
        return {}
    by_column = zip(LINE, map(set, zip(*lines, strict=True)), strict=True)
    runs = Run.objects.order_by().filter(
        status=Run.Status.DONE, **{f"{name}__in": has for name, has in by_column}
    )
    changes = ChangePoint.objects.filter(layers__isnull=False, run__in=runs.values("pk")).order_by(
        "run_id", "pk"
    )
    changes = changes.select_related("run").only(*_OF_CHANGE, *(f"run__{name}" for name in _OF_RUN))
    hidden: dict[Line, list[int]] = {}
    for pk, *line in runs.exclude(pk__in=viewer.rows(Run).order_by().values("pk")).values_list("pk", *LINE):
        hidden.setdefault((line[0], line[1], line[2]), []).append(pk)
    by_line: dict[Line, list[ChangePoint]] = {line: [] for line in lines}
    for change in changes:
        if (line := line_of(change.run)) in by_line:
            by_line[line].append(change)
    return {line: [*of_seen_runs(each, hidden.get(line, ()))] for line, each in by_line.items()}
