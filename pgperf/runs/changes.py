"""What changed when a run ended: change points in its headline figure and its steps, and its
environment.

Both are stored when a run ends, so that pages read rows and test nothing, and so that each change
is found once. The test begins at the last change that is stored, at most WINDOW runs back.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import count
from typing import Any

from django.db import router, transaction

from pgperf import signals
from pgperf.analysis.change_points import LEAST_AFTER, WINDOW, find, least_change
from pgperf.analysis.definition_diff import (
    environment_differences,
    server_settings,
    setting_differences,
    under_server,
)
from pgperf.core import limits
from pgperf.core.records import CAPTURES
from pgperf.models import ChangePoint, Run
from pgperf.runs.db_retry import retry_while_down
from pgperf.runs.headline_ladder import Ladder, headline_series, ladder_of
from pgperf.runs.layer_changes import layers_at
from pgperf.runs.step_series import (
    Series,
    Step,
    comparable,
    series_of,
    steps_of,
    typical_ratio,
    typical_time,
)

logger = logging.getLogger(__name__)

#: Differences of an environment that are kept.
MOST_DIFFERENCES = 30


def record(run: Run, retry_s: float = 0.0) -> list[ChangePoint]:
    """Store what changed up to this run, which is done; the newly found changes, each announced.
    `retry_s`: for how long it retries while the database is down.

    Never raises: a run that is done stays so whatever happens here.
    """
    found: list[ChangePoint] = []
    try:
        found = _stored(run, retry_s)
        retry_while_down(lambda: _record_environments(run), retry_s, f"comparing the environment of {run}")
    except Exception:
        logger.exception("run %s: its history could not be searched for changes", run.pk)
    for change in found:
        signals.change_found.send_robust(sender=ChangePoint, run=run, change=change)
    return found


def _stored(run: Run, retry_s: float) -> list[ChangePoint]:
    """All changes that this run shows, or none: one that was stored alone would never be announced.
    An earlier try whose COMMIT got no answer may have stored them.
    """
    using, tries = router.db_for_write(Run), count()
    stored = ChangePoint.objects.using(using).filter(found_by=run.pk).order_by("pk")

    def step() -> list[ChangePoint]:
        again = next(tries) > 0
        with transaction.atomic(using=using):
            found = _found(run)
        return list(stored.all()) if again else found

    return retry_while_down(step, retry_s, f"searching the history of {run} for changes")


def _found(run: Run) -> list[ChangePoint]:
    """The changes of the headline figure first, then those of the steps."""
    using = router.db_for_write(Run)
    numbers = _numbers(run)
    if len(numbers) <= LEAST_AFTER:
        return []
    last, steps = _last_changes(numbers), steps_of(run.pk, using)
    series, ladder = series_of(numbers, steps, using), ladder_of(steps)
    found = []
    if ladder:
        points = _since(headline_series(ladder, numbers, using), last.get(ladder.step, 0))
        found += _new(run, ladder.step, points, partial(_layers, run, ladder, series))
    for step, each in series.items():
        if not ladder or step != ladder.step:
            found += _new(run, step, _since(each, last.get(step, 0)))
    return found


def _since(series: Series, begin: int) -> Series:
    return {number: point for number, point in series.items() if number >= begin}


def _layers(
    run: Run, ladder: Ladder, series: Mapping[Step, Series], runs: Sequence[int], at: int
) -> list[dict[str, Any]]:
    """What the layers did with a change of the headline figure, as JSON."""
    return [asdict(each) for each in layers_at(ladder, series, runs, at, _most_blocks(run))]


def _numbers(run: Run) -> list[int]:
    """The latest comparable runs up to this one, by primary key."""
    runs = comparable(Run.objects.using(router.db_for_write(Run)), run).filter(pk__lte=run.pk)
    return sorted(runs.order_by("-pk").values_list("pk", flat=True)[:WINDOW])


def _last_changes(numbers: Sequence[int]) -> dict[Step, int]:
    """The run with which the present level of each step begins."""
    rows = ChangePoint.objects.using(router.db_for_write(Run)).filter(run__in=numbers).order_by("run_id")
    return {Step(label, below): run for label, below, run in rows.values_list("label", "below", "run_id")}


def _new(
    run: Run,
    step: Step,
    series: Series,
    layers: Callable[[Sequence[int], int], list[dict[str, Any]] | None] = lambda runs, at: None,
) -> list[ChangePoint]:
    """The changes in what is one level so far, stored. `layers` tells what the layers did, from the
    runs of two levels and the run with which the later one begins.
    """
    points, numbers = list(series.values()), list(series)
    least = least_change(typical_time(points))
    half_widths = [point.half_width_us for point in points]
    places = find([point.us for point in points], half_widths, least, _most_blocks(run))
    ends = [0, *(place.at for place in places), len(points)]
    made = []
    for begin, place, end in zip(ends, places, ends[2:], strict=False):
        before, after = typical_ratio(points[begin : place.at]), typical_ratio(points[place.at : end])
        levels = {
            "before_us": place.before, "after_us": place.after, "low_us": place.low, "high_us": place.high,
            "before_ratio": before, "after_ratio": after,
            "layers": layers(numbers[begin:end], numbers[place.at]),
        }  # fmt: skip
        row, is_new = ChangePoint.objects.using(router.db_for_write(Run)).get_or_create(
            run_id=numbers[place.at],
            label=step.variant,
            below=step.below,
            defaults={"found_by": run.pk, **levels},
        )
        made += [row] if is_new else []
    return made


def _most_blocks(run: Run) -> int:
    """The values that an interval of one of these runs is made of, at most: its blocks, or the rounds
    of a single one.
    """
    asked = run.definition
    if asked.get("budget_s"):
        return limits.BLOCKS.high
    blocks = int(asked.get("blocks", limits.BLOCKS.high))
    return blocks if blocks > 1 else int(asked.get("rounds", limits.ROUNDS.high))


def _record_environments(run: Run) -> None:
    """Store in what each run's environment differs from that of the one before it, where that is not
    stored: for this run, for those whose run before was deleted, and once for those of an earlier
    version of pgperf. The first of WINDOW runs has one before it that is not read here.
    """
    numbers = _numbers(run)
    runs = Run.objects.using(router.db_for_write(Run))
    lacking = set(runs.filter(pk__in=numbers, environment_changes__isnull=True).values_list("pk", flat=True))
    for before, number in zip([None, *numbers], numbers, strict=False):
        if number in lacking and (before or len(numbers) < WINDOW):
            environments = dict(runs.filter(pk__in=[before or 0, number]).values_list("pk", "environment"))
            changed = _environment_changes(environments.get(before or 0), environments[number])
            stored = {"since": before, "differences": changed}
            runs.filter(pk=number).update(environment_changes=stored)


def _environment_changes(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> list[list[str]]:
    """[what, before, after] of each difference."""
    if before is None:
        return []
    settings = setting_differences(server_settings(before), server_settings(after))
    around = environment_differences(_without_captures(before), _without_captures(after))
    found = [*around, *under_server(settings)]
    return [list(each) for each in found[:MOST_DIFFERENCES]]


def _without_captures(environment: Mapping[str, Any]) -> dict[str, Any]:
    """Plans of captured statements change with the tables."""
    return {key: value for key, value in environment.items() if key != CAPTURES}
