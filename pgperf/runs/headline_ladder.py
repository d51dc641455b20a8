"""The headline figure of a benchmark over its runs, and the ladder of layers that it stands on.

The steps of the ladder, from the headline's layer down to the lowest one, add up to the figure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pgperf.analysis.headline import figure, headline
from pgperf.core.records import Variant
from pgperf.runs.step_series import Point, Series, Step, series_of


@dataclass(frozen=True)
class Rung:
    """A layer's step: `parts` are the steps of the run that it stands for, one for each workload."""

    step: Step
    parts: tuple[Step, ...]


@dataclass(frozen=True)
class Ladder:
    """`label`: what the headline figure is of; that of a suite names no workload. `labels`: the
    variants. `rungs`: from the top down; none where the workloads have different layers.
    """

    label: str
    labels: tuple[str, ...]
    rungs: tuple[Rung, ...]

    @property
    def step(self) -> Step:
        """Under which its changes are stored: as a time."""
        return Step(self.label)


def ladder_of(steps: Mapping[Step, Variant]) -> Ladder | None:
    """Of a run with these steps; None without any."""
    if not steps:
        return None
    tops = [variant.label for variant in headline([*steps.values()])]
    by_variant = {step.variant: step for step in steps}
    columns = [_column(label, by_variant) for label in tops]
    heights = {tuple(steps[step].layer for step in column) for column in columns}
    rungs = [_rung(parts, steps, by_variant) for parts in zip(*columns, strict=False)]
    return Ladder(
        _name(tops[0], len(tops), steps, by_variant), tuple(tops), tuple(rungs) if len(heights) == 1 else ()
    )


def headline_series(ladder: Ladder, runs: Sequence[int], using: str | None = None) -> Series:
    """The headline figure of each run, without those that lack it, in one query. The mean of a suite
    has no interval.
    """
    found = series_of(runs, map(Step, ladder.labels), using)
    if len(found) == 1:
        return next(iter(found.values()))
    times = {run: figure([_time(points.get(run)) for points in found.values()]) for run in runs}
    return {run: Point(us, time_us=us) for run, us in times.items() if us is not None}


def rung_series(rung: Rung, series: Mapping[Step, Series]) -> Series:
    """`series`: those of all steps of the run. A suite's step is that between the geometric means."""
    if len(rung.parts) == 1:
        return series[rung.parts[0]]
    points = {step.variant: each for step, each in series.items()}
    runs = points[rung.parts[0].variant]
    made = {run: _between(rung, points, run) for run in runs}
    return {run: point for run, point in made.items() if point is not None}


def _between(rung: Rung, points: Mapping[str, Series], run: int) -> Point | None:
    upper = _mean((part.variant for part in rung.parts), points, run)
    if not rung.step.below or upper is None:
        return None if upper is None else Point(upper, time_us=upper)
    lower = _mean((part.below for part in rung.parts), points, run)
    return None if lower is None else Point(upper - lower, ratio=upper / lower, time_us=upper)


def _mean(labels: Iterable[str], points: Mapping[str, Series], run: int) -> float | None:
    return figure([_time(points[label].get(run)) for label in labels])


def _time(point: Point | None) -> float | None:
    return point.time_us if point else None


def _column(label: str, by_variant: Mapping[str, Step]) -> list[Step]:
    """The steps from a variant down."""
    column: list[Step] = []
    while label in by_variant and by_variant[label] not in column:
        column.append(by_variant[label])
        label = by_variant[label].below
    return column


def _rung(parts: tuple[Step, ...], steps: Mapping[Step, Variant], by_variant: Mapping[str, Step]) -> Rung:
    names = (_name(label, len(parts), steps, by_variant) for label in parts[0])
    return Rung(Step(*names), parts)


def _name(label: str, count: int, steps: Mapping[Step, Variant], by_variant: Mapping[str, Step]) -> str:
    """The label of a variant; of several, what they have in common."""
    if count == 1 or label not in by_variant:
        return label
    return replace(steps[by_variant[label]], named=False).label
