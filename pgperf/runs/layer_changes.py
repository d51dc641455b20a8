"""Which layers' steps changed with a change of the headline figure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgperf.analysis.change_points import LEAST_AFTER, at_place, least_change
from pgperf.models import ChangePoint
from pgperf.runs.headline_ladder import Ladder, rung_series
from pgperf.runs.step_series import Series, Step, typical_ratio, typical_time


@dataclass(frozen=True)
class LayerChange:
    """What a layer's step did at the run of a headline's change: the medians in the runs before it and
    from it on. `low_us` to `high_us` is the interval of their difference; those of all layers hold
    together, with 95 %. `changed`: it lies beside 0, and the difference counts.
    """

    label: str
    below: str
    before_us: float
    after_us: float
    low_us: float
    high_us: float
    before_ratio: float | None
    after_ratio: float | None
    changed: bool

    @property
    def step(self) -> Step:
        return Step(self.label, self.below)

    @property
    def apart_us(self) -> float:
        return self.after_us - self.before_us


def layers_at(
    ladder: Ladder, series: Mapping[Step, Series], runs: Sequence[int], at: int, blocks: int
) -> Iterator[LayerChange]:
    """Of each layer, from the top down. `runs`: those of the two levels, of which the later one begins
    with the run `at`. A layer that is missing in too many of them is left out.
    """
    for rung in ladder.rungs:
        found = rung_series(rung, series)
        points = [found[run] for run in runs if run in found]
        place = sum(run in found and run < at for run in runs)
        if min(place, len(points) - place) >= LEAST_AFTER:
            values, half_widths = [each.us for each in points], [each.half_width_us for each in points]
            change = at_place(values, place, half_widths, blocks, among=len(ladder.rungs))
            counts = abs(change.after - change.before) >= least_change(typical_time(points))
            yield LayerChange(
                *rung.step, change.before, change.after, change.low, change.high,
                typical_ratio(points[:place]), typical_ratio(points[place:]),
                changed=counts and not change.low <= 0 <= change.high,
            )  # fmt: skip


def layers_of(change: ChangePoint) -> list[LayerChange]:
    """Of a change of the headline figure; none of another one."""
    return [LayerChange(**each) for each in change.layers or ()]
