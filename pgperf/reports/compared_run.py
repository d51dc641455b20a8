"""One side of a comparison of two runs: a stored run, or a kept JSON export of one."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import QuerySet

from pgperf.analysis.grade import Grade, GradeWord
from pgperf.analysis.ladder import Ladder
from pgperf.analysis.run_comparison import Level
from pgperf.analysis.step_changes import LayerStep, steps
from pgperf.core.exceptions import NothingToCompare
from pgperf.models import Run, VariantResult


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """`levels`: one value per block and variant, as the run's summary keeps them; `ladders` say what
    stands on what. None of both before the run is summarised. `run` is not stored where the side
    comes from a file.
    """

    run: Run
    levels: list[Level]
    ladders: list[Ladder]

    @cached_property
    def steps(self) -> list[LayerStep]:
        """What each layer adds to the one below it."""
        return steps(self.levels, self.ladders)

    @property
    def most_disturbed(self) -> Level | None:
        """That of the variant of whose time others took most; None if none was much disturbed."""
        disturbed = (level for level in self.levels if level.disturbed)
        return max(disturbed, key=lambda level: level.disturbed, default=None)


def stored(run: Run) -> ComparedRun:
    return all_stored([run])[0]


def all_stored(runs: Sequence[Run]) -> list[ComparedRun]:
    """The sides of these runs, in their order."""
    poor = VariantResult.objects.filter(run__in=runs, verdict__grade__word=GradeWord.POOR)
    shares: dict[int, dict[str, float | None]] = {}
    for run_id, label, grade in poor.values_list("run", "label", "verdict__grade"):
        shares.setdefault(run_id, {})[label] = Grade.from_json(grade).others
    return [_side(run, run.summary, shares.get(run.pk, {})) for run in runs]


def previous(candidates: QuerySet[Run], run: Run) -> Run | None:
    """The latest earlier run of the same definition on the same database that is done; none where
    that database was deleted.
    """
    if run.database_id is None:
        return None
    done = candidates.filter(status=Run.Status.DONE, pk__lt=run.pk)
    same = done.filter(definition_hash=run.definition_hash, database=run.database_id)
    return same.order_by("-pk").first()


def exported(data: Any) -> ComparedRun:
    """From what `pgperf export RUN --format json` printed.

    Raises NothingToCompare if it is something else, or an export of an earlier version.
    """
    try:
        found = {"levels": data["levels"], "ladders": data["ladders"]}
        return _checked(_side(_run(data["run"]), found, _shares(data["variants"])))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise NothingToCompare(
            "baseline: the file is not the JSON export of a run by this version of pgperf"
            f" ({type(error).__name__}: {str(error)[:60]}); write it with pgperf export RUN --format json"
        ) from error


def _side(run: Run, summary: Mapping[str, Any], shares: Mapping[str, float | None]) -> ComparedRun:
    known = {label: float(share) for label, share in shares.items() if share is not None}
    levels = map(Level.from_json, summary.get("levels", []))
    ladders = map(Ladder.from_json, summary.get("ladders", []))
    return ComparedRun(run, [level.with_disturbances(known) for level in levels], [*ladders])


def _checked(side: ComparedRun) -> ComparedRun:
    """Raises TypeError where a step of its ladders is not of a layer, or no time."""
    for rung in (rung for ladder in side.ladders for rung in (*ladder.steps, *ladder.side)):
        if not isinstance(rung.label, str) or not isinstance(rung.layer, str):
            raise TypeError("a rung of a ladder has no name")
        if not all(isinstance(us, int | float) and math.isfinite(us) for us in (rung.us, rung.step_us)):
            raise TypeError("a rung of a ladder has no time")
    return side


def _shares(variants: Iterable[Mapping[str, Any]]) -> dict[str, float | None]:
    """The most that others took of the time of each much disturbed variant; an export has the grades
    in its verdicts.
    """
    grades = {each["label"]: (each.get("verdict") or {}).get("grade") or {} for each in variants}
    poor = {label: grade for label, grade in grades.items() if grade.get("word") == GradeWord.POOR}
    return {label: Grade.from_json(grade).others for label, grade in poor.items()}


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
