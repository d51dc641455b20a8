"""One side of a comparison of two runs: a stored run, or a kept JSON export of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models import QuerySet

from pgperf.analysis.disturbances import POOR
from pgperf.analysis.grade import Grade, GradeWord
from pgperf.analysis.ladder import Ladder
from pgperf.analysis.run_comparison import Level
from pgperf.analysis.step_changes import LayerStep, steps
from pgperf.core import printable
from pgperf.core.exceptions import NothingToCompare
from pgperf.models import Run, VariantResult
from pgperf.reports import kept_export


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

    Raises NothingToCompare, which names the field, if it is something else, or an export of an
    earlier version.
    """
    try:
        kept_export.check(data)
        return _with_shares(
            kept_export.run(data),
            kept_export.levels(data),
            kept_export.ladders(data),
            kept_export.others_shares(data),
        )
    except ValueError as error:
        raise NothingToCompare(
            "baseline: the file is not the JSON export of a run by this version of pgperf"
            f" ({printable.one_line(str(error))[:120]}); write it with pgperf export RUN --format json"
        ) from error


def _side(run: Run, summary: Mapping[str, Any], shares: Mapping[str, float | None]) -> ComparedRun:
    levels = map(Level.from_json, summary.get("levels", []))
    ladders = map(Ladder.from_json, summary.get("ladders", []))
    return _with_shares(run, list(levels), list(ladders), shares)


def _with_shares(
    run: Run, levels: Sequence[Level], ladders: list[Ladder], shares: Mapping[str, float | None]
) -> ComparedRun:
    """Without shares that a quota or a slow clock alone made much: these belong to the run."""
    known = {label: share for label, share in shares.items() if share is not None and share >= POOR}
    return ComparedRun(run, [level.with_disturbances(known) for level in levels], ladders)
