import json
import math
from dataclasses import replace
from typing import Any

import pytest

from pgperf.analysis.summary import ANALYSIS_VERSION, summarise
from pgperf.analysis.variant_comparisons import pairs
from pgperf.analysis.variant_summary import COLD_PHASES
from pgperf.core.records import Variant, VariantBlock

from . import golden
from .synthetic import block, blocks, definition, variant

LAYERS = ("libpq", "psycopg2", "psycopg", "django_cursor", "django_orm")
US = {
    "libpq": 60.0,
    "psycopg2": 64.0,
    "psycopg": 70.0,
    "django_cursor": 90.0,
    "django_orm": 210.0,
    "fake": 1.0,
}
ROUTE_US = {"socket": 0.0, "tcp": 10.0}


def exact(of: Variant, number: int, round_: int) -> float:
    return US[of.layer] + ROUTE_US[of.route]


def summary_of(
    variants: list[Variant], found: list[VariantBlock], routes: tuple[str, ...] = ("socket",)
) -> dict[str, Any]:
    summary = summarise(definition(routes=routes), variants, found, "psycopg")
    rest = {key: value for key, value in summary.items() if key != "comparisons"}
    assert json.loads(json.dumps(rest, allow_nan=False)) == rest
    return summary


def pairs_of(summary: dict[str, Any]) -> list[tuple[str, str]]:
    return [(row.variant.label, row.baseline.label) for row in summary["comparisons"]]


def test_golden_summary() -> None:
    assert_same(json.loads(golden.PATH.read_text()), golden.summary())


def assert_same(expected: Any, found: Any, where: str = "summary") -> None:
    if isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9), where
    elif isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key in expected:
            assert_same(expected[key], found[key], f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for index, (one, other) in enumerate(zip(expected, found, strict=True)):
            assert_same(one, other, f"{where}[{index}]")
    else:
        assert found == expected, where


def test_every_pair_that_is_compared() -> None:
    variants = [variant(layer, route) for route in ("socket", "tcp") for layer in LAYERS]
    controls = [variant("libpq", control=1), variant("django_orm", "tcp", control=1)]
    everything = [*variants, *controls]
    found = summary_of(everything, blocks(everything, 6, 2, exact), ("socket", "tcp"))
    assert pairs_of(found) == [
        *[(f"{layer} · socket", "libpq · socket") for layer in LAYERS[1:]],
        ("django_cursor · socket", "psycopg · socket"),
        ("django_orm · socket", "django_cursor · socket"),
        *[(f"{layer} · tcp", "libpq · tcp") for layer in LAYERS[1:]],
        ("django_cursor · tcp", "psycopg · tcp"),
        ("django_orm · tcp", "django_cursor · tcp"),
        *[(f"{layer} · tcp", f"{layer} · socket") for layer in LAYERS],
        ("libpq · socket · control 1", "libpq · socket"),
        ("django_orm · tcp · control 1", "django_orm · tcp"),
    ]
    assert [row.aa for row in found["comparisons"]] == [False] * 17 + [True] * 2
    assert {row.outcome for row in found["comparisons"]} == {"differs", "equivalent"}
    assert [ladder["route"] for ladder in found["ladders"]] == ["socket", "tcp"]


def test_a_step_that_builds_on_a_later_route_is_compared_once() -> None:
    asked = replace(definition(routes=("nginx", "apache")), web_routes={"nginx": "apache", "apache": ""})
    nginx, apache = (variant("http", route) for route in asked.routes)
    assert pairs(asked, [nginx, apache], "psycopg") == [(nginx, apache)]


def test_without_libpq_the_first_layer_is_the_baseline() -> None:
    variants = [variant("psycopg"), variant("django_cursor"), variant("django_orm")]
    found = summary_of(variants, blocks(variants, 6, 2, exact))
    assert pairs_of(found) == [
        ("django_cursor · socket", "psycopg · socket"),
        ("django_orm · socket", "psycopg · socket"),
        ("django_orm · socket", "django_cursor · socket"),
    ]


def test_modes_and_clients_are_not_mixed() -> None:
    variants = [
        variant(layer, mode=mode, clients=clients)
        for mode in ("simple", "prepared")
        for clients in (1, 8)
        for layer in ("libpq", "psycopg")
    ]
    found = summary_of(variants, blocks(variants, 6, 2, exact))
    assert len(found["ladders"]) == 4
    assert pairs_of(found) == [
        ("psycopg · socket", "libpq · socket"),
        ("psycopg · socket · 8 clients", "libpq · socket · 8 clients"),
        ("psycopg · socket · prepared", "libpq · socket · prepared"),
        ("psycopg · socket · prepared · 8 clients", "libpq · socket · prepared · 8 clients"),
        ("libpq · socket · prepared", "libpq · socket"),
        ("psycopg · socket · prepared", "psycopg · socket"),
        ("libpq · socket · prepared · 8 clients", "libpq · socket · 8 clients"),
        ("psycopg · socket · prepared · 8 clients", "psycopg · socket · 8 clients"),
        ("libpq · socket · 8 clients", "libpq · socket"),
        ("psycopg · socket · 8 clients", "psycopg · socket"),
        ("libpq · socket · prepared · 8 clients", "libpq · socket · prepared"),
        ("psycopg · socket · prepared · 8 clients", "psycopg · socket · prepared"),
    ]
    assert [(curve["layer"], curve["mode"]) for curve in found["scaling"]] == [
        ("libpq", "simple"), ("psycopg", "simple"), ("libpq", "prepared"), ("psycopg", "prepared"),
    ]  # fmt: skip


def test_a_run_that_fails_nothing_says_so_in_numbers() -> None:
    variants = [variant("libpq"), variant("django_orm")]
    found = summary_of(variants, blocks(variants, 6, 5, exact))
    assert found["analysis_version"] == ANALYSIS_VERSION
    (row,) = found["comparisons"]
    assert (row.ratio, row.delta_us) == pytest.approx((3.5, 150.0))
    assert (row.outcome, row.sample, row.pairs, row.mde) == (
        "differs",
        "blocks",
        30,
        pytest.approx(0.01),
    )
    libpq = found["variants"][0]
    assert libpq["us_per_op"] == pytest.approx(60)
    assert libpq["ops_per_s"] == pytest.approx(1e6 / 60, rel=1e-3)
    assert libpq["rows_per_s"] == pytest.approx(libpq["ops_per_s"])
    assert (libpq["slices"], libpq["ops"]) == (30, 30 * 3333)


def test_nothing_measured_is_a_summary_of_nulls() -> None:
    variants = [variant("libpq"), variant("libpq", control=1)]
    found = summary_of(variants, [])
    assert found["comparisons"] == found["ladders"] == []
    for row in found["variants"]:
        assert (row["slices"], row["ops"], row["us_per_op"], row["ops_per_s"]) == (0, 0, None, None)
        assert set(row["latency_us"].values()) == set(row["cpu_us_per_op"].values()) == {None}


def test_a_run_cut_short_says_what_it_can() -> None:
    """One block whole, of the second only the first variant: the rounds of the first are the
    sample.
    """
    variants = [variant("libpq"), variant("django_orm"), variant("psycopg")]
    found = summary_of(
        variants,
        [
            block(variants[0], 0, [50, 51, 52, 50, 51, 52]),
            block(variants[1], 0, [200, 203, 208, 200, 204, 208]),
            block(variants[0], 1, [50, 51]),
        ],
    )
    (row,) = found["comparisons"]
    assert (row.variant.label, row.sample, row.pairs, row.outcome) == (
        "django_orm · socket",
        "rounds",
        6,
        "differs",
    )
    assert [step["layer"] for step in found["ladders"][0]["steps"]] == ["libpq", "django_orm"]
    assert found["variants"][2]["us_per_op"] is None


def test_a_single_round_gives_centres_without_intervals() -> None:
    variants = [variant("libpq"), variant("django_orm")]
    found = summary_of(variants, blocks(variants, 1, 1, exact))
    (row,) = found["comparisons"]
    assert (row.ratio, row.low, row.high, row.outcome) == (
        pytest.approx(3.5),
        None,
        None,
        "inconclusive",
    )
    assert row.mde is None


def test_one_layer_alone_has_no_comparison() -> None:
    found = summary_of([variant("fake")], blocks([variant("fake")], 6, 2, exact))
    assert found["comparisons"] == found["ladders"] == []


def test_a_control_is_compared_with_a_variant_that_has_an_outcome() -> None:
    variants = [variant("libpq"), variant("libpq", control=1)]
    assert pairs(definition(), variants, "psycopg") == [(variants[1], variants[0])]
    assert pairs(definition(), variants[1:], "psycopg") == []


def test_controls_do_not_weigh_on_the_family() -> None:
    """The same borderline difference, with and without a control beside it."""
    variants = [variant("libpq"), variant("psycopg")]

    def times(of: Variant, number: int, round_: int) -> float:
        return math.exp((0.03 + 0.017 * (number - 2.5) / 2) * (of.layer == "psycopg"))

    alone = summary_of(variants, blocks(variants, 6, 1, times))["comparisons"][0]
    control = [*variants, variant("libpq", control=1)]
    beside = summary_of(control, blocks(control, 6, 1, times))["comparisons"]
    assert beside[0] == alone
    assert alone.outcome == "differs"
    assert beside[1].aa is True


def test_controls_are_a_family_of_their_own() -> None:
    """A borderline false difference is one beside no other control, and none beside five."""
    layers = ("libpq", "psycopg2", "psycopg", "django_cursor", "django_orm", "asyncpg")
    variants = [variant(layer) for layer in layers]
    controls = [replace(each, control=1) for each in variants]

    def times(of: Variant, number: int, round_: int) -> float:
        return math.exp((0.03 + 0.017 * (number - 2.5) / 2) * (of == controls[0]))

    def outcomes(of: list[Variant]) -> list[str]:
        return [row.outcome for row in summary_of(of, blocks(of, 6, 1, times))["comparisons"] if row.aa]

    assert outcomes([*variants, controls[0]]) == ["differs"]
    assert outcomes([*variants, *controls]) == ["inconclusive", *["equivalent"] * 5]


def test_cold_phases_are_medians_of_the_blocks_that_have_them() -> None:
    of = variant("libpq")
    cold = [{"startup": 3.0, "connect": None}, {"startup": 1.0}, {"startup": 8.0}]
    found = summary_of(
        [of],
        [
            VariantBlock(variant=of, cohort=0, block=number, slices=(), cold_us=row)
            for number, row in enumerate(cold)
        ],
    )
    row = found["variants"][0]["cold_us"]
    assert tuple(row) == COLD_PHASES
    assert row["startup"] == 3.0
    assert {row[phase] for phase in COLD_PHASES[1:]} == {None}
