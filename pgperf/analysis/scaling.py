"""Scaling: throughput, latency and efficiency over the number of clients."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from pgperf.analysis.cpu_account import CpuShares
from pgperf.analysis.outcome import CONFIDENCE
from pgperf.analysis.paired_comparisons import Measurements, ops_per_s
from pgperf.analysis.samples import interval
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.core.records import Variant

Summaries = Mapping[Variant, VariantSummary]


@dataclass(frozen=True)
class Point:
    """One number of clients, counting all workers. `low` and `high` are the 95 % interval of
    `ops_per_s`.

    `efficiency` is throughput per client over that of the fewest clients: 1 where every client adds
    as much as the first, 1/n where n do no more than one. Its interval is made of slices of the
    same rounds. None: unknown.
    """

    clients: int
    ops_per_s: float | None
    low: float | None = None
    high: float | None = None
    p50_us: float | None = None
    p99_us: float | None = None
    efficiency: float | None = None
    efficiency_low: float | None = None
    efficiency_high: float | None = None
    share: CpuShares | None = None  # of the host; joined where a run is read


@dataclass(frozen=True)
class Curve:
    """What was measured with several numbers of clients, the fewest first."""

    workload: str
    layer: str
    mode: str
    route: str
    points: tuple[Point, ...]

    def to_json(self) -> dict[str, Any]:
        """As stored: without the shares, which the variants' CPU accounts have."""
        points = [{name: value for name, value in asdict(p).items() if name != "share"} for p in self.points]
        return {**asdict(self), "points": points}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{**data, "points": tuple(Point(**point) for point in data["points"])})


def pairs(variants: Iterable[Variant]) -> Iterator[tuple[Variant, Variant]]:
    """Every number of clients over the smallest of the same."""
    for series in _series(variants):
        yield from ((variant, series[0]) for variant in series[1:])


def curves(measurements: Measurements, summaries: Summaries) -> list[Curve]:
    """A curve for each series of measured variants that differ in their clients only."""
    measured = (variant for variant in summaries if variant in measurements)
    return [_curve(measurements, series, summaries) for series in _series(measured) if len(series) > 1]


def _series(variants: Iterable[Variant]) -> list[list[Variant]]:
    """Variants that differ in their clients only, the fewest first."""
    found: dict[Variant, list[Variant]] = {}
    for variant in variants:
        found.setdefault(replace(variant, clients=0), []).append(variant)
    return [sorted(series, key=lambda variant: variant.clients) for series in found.values()]


def _curve(measurements: Measurements, series: Sequence[Variant], summaries: Summaries) -> Curve:
    first = series[0]
    points = (_point(measurements, variant, first, summaries[variant]) for variant in series)
    return Curve(first.workload, first.layer, first.mode, first.route, tuple(points))


def _point(measurements: Measurements, variant: Variant, first: Variant, summary: VariantSummary) -> Point:
    throughput = interval(measurements.level(variant, ops_per_s), CONFIDENCE).of_a_time()
    efficiency, low, high = _efficiency(measurements, variant, first)
    return Point(
        clients=variant.connections,
        ops_per_s=summary.ops_per_s,
        low=throughput.low,
        high=throughput.high,
        p50_us=summary.latency_us["p50"],
        p99_us=summary.latency_us["p99"],
        efficiency=efficiency,
        efficiency_low=low,
        efficiency_high=high,
    )


def _efficiency(
    measurements: Measurements, variant: Variant, first: Variant
) -> tuple[float | None, float | None, float | None]:
    if variant == first:
        return 1.0, None, None
    paired = measurements.ratio(variant, first, ops_per_s)
    if paired is None:
        return None, None, None
    share, gain = first.clients / variant.clients, paired.at(CONFIDENCE).exp()
    low, high = (None if end is None else end * share for end in (gain.low, gain.high))
    return gain.centre * share, low, high
