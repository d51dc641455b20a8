"""Scaling curves: which variants make one, and what efficiency is."""

import json
import math
from dataclasses import replace

import pytest

from pgperf.analysis import scaling
from pgperf.analysis.fit import Fit
from pgperf.analysis.paired_comparisons import Measurements, ops_per_s
from pgperf.analysis.summary import summarise
from pgperf.analysis.variant_summary import VariantSummary
from pgperf.core.records import Variant, VariantBlock

from .synthetic import block, definition, piece, variant

COUNTS = (1, 2, 4)


def measured(variants: list[Variant], number_of_blocks: int = 6) -> list[VariantBlock]:
    """Throughput that doubles up to two clients and then stays; the machine drifts by a tenth from
    round to round.
    """
    return [_block(of, number) for number in range(number_of_blocks) for of in variants]


def _block(of: Variant, number: int) -> VariantBlock:
    drifts = [1 + 0.1 * math.sin(3 * number + round_) for round_ in range(3)]
    throughput = 10_000.0 * min(of.clients, 2)
    slices = tuple(
        piece(of.clients / throughput * 1e6 / drift, round_, ops_per_s=throughput * drift)
        for round_, drift in enumerate(drifts)
    )
    return VariantBlock(variant=of, cohort=0, block=number, slices=slices)


def curves(variants: list[Variant], found: list[VariantBlock]) -> list[scaling.Curve]:
    rows = summarise(definition(routes=("socket", "tcp")), variants, found, "psycopg")["variants"]
    summaries = dict(zip(variants, map(VariantSummary.from_json, rows), strict=True))
    measurements = Measurements(found)
    made = scaling.curves(Fit.of(measurements, scaling.pairs(variants), ops_per_s), summaries)
    for curve in made:
        assert scaling.Curve.from_json(json.loads(json.dumps(curve.to_json(), allow_nan=False))) == curve
    return made


def test_one_curve_for_each_layer_over_each_route() -> None:
    routes, layers = ("socket", "tcp"), ("libpq", "django_orm")
    variants = [variant(la, ro, clients=n) for ro in routes for n in (4, 1) for la in layers]
    variants.append(variant("psycopg", "socket"))
    found = curves(variants, measured(variants))
    assert [(c.layer, c.route, [p.clients for p in c.points]) for c in found] == [
        ("libpq", "socket", [1, 4]), ("django_orm", "socket", [1, 4]),
        ("libpq", "tcp", [1, 4]), ("django_orm", "tcp", [1, 4]),
    ]  # fmt: skip


def test_efficiency_is_throughput_per_client_over_that_of_the_fewest() -> None:
    variants = [variant(clients=n) for n in COUNTS]
    (curve,) = curves(variants, measured(variants))
    assert [point.efficiency for point in curve.points] == pytest.approx([1, 1, 0.5])
    assert [point.ops_per_s for point in curve.points] == pytest.approx([1e4, 2e4, 2e4], rel=0.05)


def test_efficiency_is_made_of_pairs_so_that_drift_cancels() -> None:
    variants = [variant(clients=n) for n in COUNTS]
    (curve,) = curves(variants, measured(variants))
    last = curve.points[-1]
    assert last.efficiency_high is not None
    assert last.efficiency_low is not None
    assert last.high is not None
    assert last.low is not None
    assert last.ops_per_s
    assert last.efficiency_high - last.efficiency_low < 1e-9
    assert (last.high - last.low) / last.ops_per_s > 0.02


def test_where_the_first_has_several_clients_it_is_still_the_measure() -> None:
    variants = [variant(clients=2), variant(clients=4)]
    (curve,) = curves(variants, measured(variants))
    assert [point.efficiency for point in curve.points] == pytest.approx([1, 0.5])


def test_efficiency_is_unknown_where_nothing_was_measured_side_by_side() -> None:
    variants = [variant(clients=1), variant(clients=2)]
    found = [_block(variants[0], 0), _block(variants[1], 1)]
    (curve,) = curves(variants, found)
    assert [point.efficiency for point in curve.points] == [1.0, None]


def test_an_open_loop_has_no_efficiency() -> None:
    """Its rate is given: more clients share the same operations."""
    opened = [replace(variant(clients=n), rate=1e4, schedule="constant") for n in COUNTS]
    (curve,) = curves(opened, measured(opened))
    assert [point.efficiency for point in curve.points] == [None, None, None]
    assert all(point.ops_per_s for point in curve.points)


@pytest.mark.parametrize(("failing", "expected"), [(2, [1, None, 0.5]), (1, [None, None, None])])
def test_a_variant_without_an_outcome_has_no_efficiency(failing: int, expected: list[float | None]) -> None:
    """More than one in a thousand of its requests failed: its figures are shown, and not compared."""
    variants = [variant(clients=n) for n in COUNTS]
    requests = {"requests": 1000, "errors": {"status 502": 9}, "lengths": [10]}
    found = [
        replace(each, http=requests) if each.variant.clients == failing else each
        for each in measured(variants)
    ]
    (curve,) = curves(variants, found)
    assert [point.ops_per_s is not None for point in curve.points] == [True, True, True]
    for point, efficiency in zip(curve.points, expected, strict=True):
        assert point.efficiency == (None if efficiency is None else pytest.approx(efficiency))


def test_what_was_not_measured_is_on_no_curve() -> None:
    variants = [variant(clients=n) for n in COUNTS]
    (curve,) = curves(variants, measured(variants[:2]))
    assert [point.clients for point in curve.points] == [1, 2]
    assert curves(variants, measured(variants[:1])) == []
    assert curves(variants, []) == []


def test_every_number_of_clients_is_compared_with_the_smallest() -> None:
    variants = [variant(layer, clients=n) for layer in ("libpq", "django_orm") for n in (4, 2, 1)]
    assert [(a.label, b.label) for a, b in scaling.pairs(variants)] == [
        ("libpq · socket · 2 clients", "libpq · socket"),
        ("libpq · socket · 4 clients", "libpq · socket"),
        ("django_orm · socket · 2 clients", "django_orm · socket"),
        ("django_orm · socket · 4 clients", "django_orm · socket"),
    ]


def test_a_block_of_one_round_still_gives_a_curve() -> None:
    variants = [variant(clients=1), variant(clients=2)]
    found = [block(variants[0], 0, [50.0]), block(variants[1], 0, [50.0])]
    (curve,) = curves(variants, found)
    assert curve.points[1].efficiency_low is None
