"""A run with its results, read once: what pages, the terminal, JSON and files are made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, TypeVar

from pgperf.analysis.cpu_account import CpuShares
from pgperf.analysis.geometric_mean import GeometricMean
from pgperf.analysis.ladder import Ladder
from pgperf.analysis.next_step import Savings
from pgperf.analysis.rate_search import RateSearch
from pgperf.analysis.scaling import Curve, Point
from pgperf.analysis.timeline import Timeline
from pgperf.catalog.published import PUBLICATIONS, Figure, Publication
from pgperf.core.records import LeftOut, with_workloads
from pgperf.models import ChangePoint, ComparisonResult, Run, VariantResult
from pgperf.reports.history import Line

T = TypeVar("T")
#: The analysis version that began to make all figures of a run by one fit.
_ONE_FIT = 6


@dataclass(frozen=True)
class RunRows:
    """A run's rows, each comparison with its variants. `before` is the run to set it against, None
    without one; `is_first`: one was looked for, and the reader may see none, and `longest` is the
    benchmark's longest series then. `changes`: the changes over runs up to this one, and `counted`,
    how many these runs are; 0 if not asked. `made`: what was made of the rows `once`.
    """

    run: Run
    variants: Sequence[VariantResult]
    comparisons: Sequence[ComparisonResult]
    before: Run | None = None
    changes: Sequence[ChangePoint] = ()
    is_first: bool = False
    longest: Line | None = None
    counted: int = 0
    made: dict[Callable[..., Any], Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def ladders(self) -> list[Ladder]:
        """Those with a rung at least."""
        found = map(Ladder.from_json, self.run.summary.get("ladders", []))
        return [ladder for ladder in found if ladder.steps]

    @property
    def is_suite(self) -> bool:
        """Did three or more workloads take turns?"""
        return len(with_workloads(self.run.definition)["workloads"]) > 2

    @property
    def has_one_fit(self) -> bool:
        """Do its times, steps and ratios agree? Each was a centre of its own in older versions."""
        return self.run.analysis_version >= _ONE_FIT

    @cached_property
    def geometric_means(self) -> list[GeometricMean]:
        return [GeometricMean.from_json(each) for each in self.run.summary.get("geometric_means", [])]

    @cached_property
    def throughput_ratios(self) -> dict[tuple[str, str], dict[str, float | None]]:
        """Of the steps of a web site: `ratio`, `low`, `high` by the labels of variant and baseline."""
        return {(each["variant"], each["baseline"]): each for each in self.run.summary.get("effects", [])}

    @property
    def publication(self) -> Publication | None:
        """What the run's benchmark reproduces."""
        return PUBLICATIONS.get(self.run.benchmark_name)

    @cached_property
    def published(self) -> dict[int, Figure]:
        """The published figures of the variants that have one, by primary key."""
        if self.publication is None:
            return {}
        found = {row.pk: self.publication.figure(row.identity) for row in self.variants}
        return {pk: figure for pk, figure in found.items() if figure}

    @cached_property
    def skipped(self) -> list[LeftOut]:
        """What the plan left out."""
        return [LeftOut(**each) for each in self.run.summary.get("skipped", [])]

    @cached_property
    def savings(self) -> Savings:
        """What one variant of a comparison saves at least of the time of the other."""
        found: dict[tuple[str, str], float] = {}
        for row in self.comparisons:
            variant, baseline = row.variant.label, row.baseline.label
            if row.delta_low_us is not None and row.delta_high_us is not None:
                found |= {(variant, baseline): row.delta_low_us, (baseline, variant): -row.delta_high_us}
        return found

    @property
    def originals(self) -> list[VariantResult]:
        """The variants without the controls."""
        return [row for row in self.variants if not row.control]

    @property
    def off_ladders(self) -> list[VariantResult]:
        """Those of them that are on no ladder and beside none."""
        return [row for row in self.originals if not any(ladder.has(row.identity) for ladder in self.ladders)]

    @cached_property
    def scaling(self) -> list[Curve]:
        """The curves over the number of clients, each point with the shares of its variant's CPU
        account.
        """
        shares = {_key(row): account.share for row in self.originals if (account := row.record.cpu_account)}
        curves = map(_curve, self.run.summary.get("scaling", []))
        return [_with_shares(curve, shares) for curve in curves]

    def variant_of(self, curve: Curve, point: Point) -> VariantResult | None:
        """The variant of a point of a curve."""
        return self._by_key.get(_key_of(curve, point))

    @cached_property
    def _by_key(self) -> "dict[_Key, VariantResult]":
        return {_key(row): row for row in self.originals}

    @cached_property
    def rate_searches(self) -> list[RateSearch]:
        """What the searches for the highest rate found; none in runs of older versions."""
        return [RateSearch.from_json(each) for each in self.run.summary.get("rate_searches", [])]

    @cached_property
    def timeline(self) -> Timeline | None:
        """The host over time; None for a run without CPU accounts."""
        return Timeline.from_json(self.run.summary.get("timeline"))


def once(make: Callable[[RunRows], T]) -> Callable[[RunRows], T]:
    """Decorates what several parts of a page make of the same rows: the first makes it for all."""

    @wraps(make)
    def made(rows: RunRows) -> T:
        if make not in rows.made:
            rows.made[make] = make(rows)
        found: T = rows.made[make]
        return found

    return made


def read(run: Run, before: Run | None = None, changes: Sequence[ChangePoint] = (), **earlier: Any) -> RunRows:
    """In two queries. `earlier`: other fields of the rows that tell of other runs."""
    variants = list(run.variants.all())
    for each in variants:
        each.keep_record()
    by_id = {row.pk: row for row in variants}
    comparisons = list(run.comparisons.all())
    for row in comparisons:
        row.variant, row.baseline = by_id[row.variant_id], by_id[row.baseline_id]
    return RunRows(run, variants, comparisons, before, changes, **earlier)


_Key = tuple[str, str, str, str, str, int, str, float | None, int, int]


def _key(row: VariantResult) -> _Key:
    return (
        row.workload, row.layer, row.mode, row.route, row.connect, row.workers, row.environment, row.rate, row.hosts,
        row.identity.connections,
    )  # fmt: skip


def _curve(stored: dict[str, Any]) -> Curve:
    """Without efficiencies at a rate: any number of clients has its throughput."""
    found = Curve.from_json(stored)
    if found.rate is None:
        return found
    points = (
        replace(point, efficiency=None, efficiency_low=None, efficiency_high=None) for point in found.points
    )
    return replace(found, points=tuple(points))


def _with_shares(curve: Curve, shares: dict[_Key, CpuShares]) -> Curve:
    points = (replace(point, share=shares.get(_key_of(curve, point))) for point in curve.points)
    return replace(curve, points=tuple(points))


def _key_of(curve: Curve, point: Point) -> _Key:
    """That of the variant of a point."""
    return (
        curve.workload, curve.layer, curve.mode, curve.route, curve.connect, curve.workers, curve.environment,
        curve.rate, curve.hosts, point.clients,
    )  # fmt: skip
