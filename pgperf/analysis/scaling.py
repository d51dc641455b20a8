"""What more clients bring: throughput, latency and efficiency over the number of clients."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pgperf.analysis.outcome import CONFIDENCE
from pgperf.analysis.paired_comparisons import Measurements, ops_per_s
from pgperf.analysis.samples import interval
from pgperf.core.records import Variant

Row = Mapping[str, Any]


def pairs(variants: Iterable[Variant]) -> Iterator[tuple[Variant, Variant]]:
    """Every number of clients over the smallest of the same."""
    for series in _series(variants):
        yield from ((variant, series[0]) for variant in series[1:])


def curves(
    measurements: Measurements, variants: Iterable[Variant], rows: Iterable[Row]
) -> list[dict[str, Any]]:
    """One curve for whatever was measured with two numbers of clients or more, in the order of the variants.

    `rows` are the summary's. `low` and `high` are the 95 % interval of `ops_per_s`. `efficiency` is throughput per
    client over that of the fewest clients: 1 where every client brings as much as the first, 1/n where n bring no more
    than one; its interval is made of slices of the same rounds. JSON-able; what is unknown is None.
    """
    by_label = {row["label"]: row for row in rows}
    measured = (variant for variant in variants if variant in measurements)
    return [_curve(measurements, series, by_label) for series in _series(measured) if len(series) > 1]


def _series(variants: Iterable[Variant]) -> list[list[Variant]]:
    """Variants that differ in their clients only, the fewest first."""
    found: dict[Variant, list[Variant]] = {}
    for variant in variants:
        found.setdefault(replace(variant, clients=0), []).append(variant)
    return [sorted(series, key=lambda variant: variant.clients) for series in found.values()]


def _curve(measurements: Measurements, series: Sequence[Variant], rows: Mapping[str, Row]) -> dict[str, Any]:
    first = series[0]
    return {
        "layer": first.layer,
        "route": first.route,
        "mode": first.mode,
        "workload": first.workload,
        "points": [_point(measurements, variant, first, rows[variant.label]) for variant in series],
    }


def _point(measurements: Measurements, variant: Variant, first: Variant, row: Row) -> dict[str, Any]:
    throughput = interval(measurements.level(variant, ops_per_s), CONFIDENCE).of_a_time()
    return {
        "clients": variant.clients,
        "ops_per_s": row["ops_per_s"],
        "low": throughput.low,
        "high": throughput.high,
        "p50_us": row["latency_us"]["p50"],
        "p99_us": row["latency_us"]["p99"],
        **_efficiency(measurements, variant, first),
    }


def _efficiency(measurements: Measurements, variant: Variant, first: Variant) -> dict[str, float | None]:
    if variant == first:
        return {"efficiency": 1.0, "efficiency_low": None, "efficiency_high": None}
    paired = measurements.ratio(variant, first, ops_per_s)
    if paired is None:
        return dict.fromkeys(("efficiency", "efficiency_low", "efficiency_high"))
    share, gain = first.clients / variant.clients, paired.at(CONFIDENCE).exp()
    return {
        "efficiency": gain.centre * share,
        "efficiency_low": None if gain.low is None else gain.low * share,
        "efficiency_high": None if gain.high is None else gain.high * share,
    }
