"""Scaling: throughput, latency and efficiency over the number of clients."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from pgperf.analysis.cpu_account import CpuShares
from pgperf.analysis.fit import Fit
from pgperf.analysis.outcome import CONFIDENCE
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.core.client_environment import DEFAULT
from pgperf.core.records import Variant

Summaries = Mapping[Variant, VariantSummary]
_Interval = tuple[float | None, float | None, float | None]
_UNKNOWN: _Interval = None, None, None


@dataclass(frozen=True)
class Point:
    """One number of clients; of connections where clients have several workers. `low` and `high` are
    the 95 % interval of `ops_per_s`.

    `efficiency` is throughput per client over that of the fewest clients: 1 where every client adds
    as much as the first, 1/n where n do no more than one. Its interval is made of slices of the
    same rounds. None: unknown, or an open loop.
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
    """What was measured with several numbers of clients, the fewest first.

    `workers`: how many each client has.
    """

    workload: str
    layer: str
    mode: str
    route: str
    points: tuple[Point, ...]
    connect: str = "persistent"
    workers: int = 1
    environment: str = DEFAULT
    rate: float | None = None  # operations/s of an open loop; None: closed loop
    hosts: int = 0  # load hosts of the clients

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


def curves(throughput: Fit, summaries: Summaries) -> list[Curve]:
    """A curve for each series of measured variants that differ in their clients only.

    `throughput`: the fitted operations per second.
    """
    measured = (variant for variant in summaries if variant in throughput)
    return [_curve(throughput, series, summaries) for series in _series(measured) if len(series) > 1]


def _series(variants: Iterable[Variant]) -> list[list[Variant]]:
    """Variants that differ in their clients only, the fewest first."""
    found: dict[Variant, list[Variant]] = {}
    for variant in variants:
        found.setdefault(replace(variant, clients=0), []).append(variant)
    return [sorted(series, key=lambda variant: variant.clients) for series in found.values()]


def _curve(throughput: Fit, series: Sequence[Variant], summaries: Summaries) -> Curve:
    first = series[0]
    points = (_point(throughput, variant, first, summaries) for variant in series)
    return Curve(
        first.workload, first.layer, first.mode, first.route, tuple(points), first.connect, first.workers,
        first.environment, first.rate, first.hosts,
    )  # fmt: skip


def _point(throughput: Fit, variant: Variant, first: Variant, summaries: Summaries) -> Point:
    found, latency_us = throughput.level(variant), summaries[variant].latency_us
    is_known = _has_efficiency(variant, first, summaries)
    efficiency, low, high = _efficiency(throughput, variant, first) if is_known else _UNKNOWN
    return Point(
        clients=variant.connections,
        ops_per_s=found.centre,
        low=found.low,
        high=found.high,
        p50_us=latency_us["p50"],
        p99_us=latency_us["p99"],
        efficiency=efficiency,
        efficiency_low=low,
        efficiency_high=high,
    )


def _has_efficiency(variant: Variant, first: Variant, summaries: Summaries) -> bool:
    """Not in an open loop, whose rate is given; nor where too many requests of one of them failed."""
    return not variant.is_open_loop and all(summaries[each].has_outcome for each in (variant, first))


def _efficiency(throughput: Fit, variant: Variant, first: Variant) -> _Interval:
    if variant == first:
        return 1.0, None, None
    paired = throughput.paired(variant, first)
    if paired is None:
        return _UNKNOWN
    share, gain = first.clients / variant.clients, paired.log.at(CONFIDENCE).exp()
    low, high = (None if end is None else end * share for end in (gain.low, gain.high))
    return gain.centre * share, low, high
