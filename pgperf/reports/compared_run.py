"""One side of a comparison of two runs: a stored run, or a kept JSON export of one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from pgperf.analysis.run_comparison import Level
from pgperf.core.exceptions import NothingToCompare
from pgperf.models import Run


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """`levels`: one value per block and variant, as the run's summary keeps them; none before it is
    summarised. `run` is not stored where the side comes from a file.
    """

    run: Run
    levels: list[Level]


def stored(run: Run) -> ComparedRun:
    return ComparedRun(run, [Level.from_json(level) for level in run.summary.get("levels", [])])


def previous(candidates: QuerySet[Run], run: Run) -> Run | None:
    """The latest earlier run of the same definition that is done."""
    same = candidates.filter(definition_hash=run.definition_hash, status=Run.Status.DONE, pk__lt=run.pk)
    return same.order_by("-pk").first()


def exported(data: Any) -> ComparedRun:
    """From what `pgperf export RUN --format json` printed.

    Raises NothingToCompare if it is something else, or an export of an earlier version.
    """
    try:
        run = _run(data["run"])
        levels = [Level.from_json(level) for level in data["levels"]]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NothingToCompare(
            "baseline: the file is not the JSON export of a run by this version of pgperf"
            f" ({type(error).__name__}: {str(error)[:60]}); write it with pgperf export RUN --format json"
        ) from error
    return ComparedRun(run, levels)


def _run(data: Mapping[str, Any]) -> Run:
    return Run(
        pk=int(data["id"]),
        status=Run.Status(data["status"]),
        benchmark_name=str(data["benchmark"]),
        database_name=str(data["database"]),
        quick=bool(data["quick"]),
        definition=dict(data["definition"]),
        definition_hash=str(data["definition_hash"]),
        environment=dict(data["environment"]),
        summary={"partial": bool(data["partial"])},
        started_at=_moment(data["started"]),
        finished_at=_moment(data["finished"]),
    )


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
