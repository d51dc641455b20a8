"""The geometric mean of a suite: over the workloads that all layers have, from the blocks."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis.fit import Fit
from pgperf.analysis.geometric_mean import GeometricMean, geometric_means
from pgperf.analysis.paired_comparisons import Measurements
from pgperf.analysis.summary import summarise
from pgperf.analysis.variant_comparisons import pairs
from pgperf.core.records import Variant, VariantBlock, WorkloadDefinition

from .synthetic import blocks, definition, fitted, variant

LAYERS = ("libpq", "psycopg", "asyncpg")
WORKS = ("one", "many", "wide")
#: Time over libpq's: by layer and workload.
RATIO = {"libpq": (1.0, 1.0, 1.0), "psycopg": (2.0, 1.0, 0.5), "asyncpg": (1.1, 1.2, 1.3)}
BASE_US = {"one": 20.0, "many": 3000.0, "wide": 250.0}


def suite(workloads: tuple[str, ...] = WORKS, layers: tuple[str, ...] = LAYERS) -> list[Variant]:
    return [replace(variant(layer), workload=name, named=True) for name in workloads for layer in layers]


def exact(of: Variant, block: int, round_: int) -> float:
    """The machine's speed changes with every block; the ratios do not."""
    return BASE_US[of.workload] * RATIO[of.layer][WORKS.index(of.workload)] * (1 + block / 10)


def means(
    variants: list[Variant],
    found: list[VariantBlock],
    workloads: tuple[str, ...] = WORKS,
    routes: tuple[str, ...] = ("socket",),
) -> dict[str, GeometricMean]:
    works = tuple(WorkloadDefinition(name, "SELECT 1") for name in workloads)
    asked = replace(definition(routes=routes), workloads=works)
    fit = Fit.of(Measurements(found), pairs(asked, variants, "psycopg"))
    return {mean.layer: mean for mean in geometric_means(asked, fit, variants)}


@pytest.mark.parametrize("count", [1, 2, 6])
def test_it_is_the_geometric_mean_of_the_ratios(count: int) -> None:
    found = means(suite(), blocks(suite(), count, 5, exact))
    assert list(found) == ["psycopg", "asyncpg"]
    for layer, mean in found.items():
        assert mean.ratio == pytest.approx(math.prod(RATIO[layer]) ** (1 / 3))
        assert (mean.base, mean.workloads, mean.blocks) == ("libpq", WORKS, count)
        assert mean.low is not None
        assert mean.high is not None
        assert mean.low <= mean.ratio <= mean.high
        assert GeometricMean.from_json(mean.to_json()) == mean


def test_a_workload_that_a_layer_lacks_counts_for_no_layer() -> None:
    lacking = [v for v in suite() if (v.layer, v.workload) != ("asyncpg", "one")]
    found = means(lacking, blocks(lacking, 6, 5, exact))
    assert found["psycopg"].workloads == found["asyncpg"].workloads == ("many", "wide")
    assert found["psycopg"].ratio == pytest.approx(math.sqrt(0.5))
    assert found["asyncpg"].ratio == pytest.approx(math.sqrt(1.2 * 1.3))


def test_without_a_common_workload_there_is_none() -> None:
    apart = [v for v in suite() if (v.layer == "libpq") == (v.workload == "one")]
    assert means(apart, blocks(apart, 6, 5, exact)) == {}


def test_without_libpq_the_first_layer_is_the_base() -> None:
    drivers = suite(layers=LAYERS[1:])
    (mean,) = means(drivers, blocks(drivers, 6, 5, exact)).values()
    assert (mean.layer, mean.base) == ("asyncpg", "psycopg")


def test_a_block_that_lacks_a_workload_is_left_out() -> None:
    found = blocks(suite(), 6, 5, exact)
    partial = [each for each in found if not (each.block == 3 and each.variant.workload == "wide")]
    assert means(suite(), partial)["psycopg"].blocks == 5


def test_workloads_in_cohorts_of_their_own_count_like_others() -> None:
    split = [
        block
        for cohort, name in enumerate(WORKS)
        for block in blocks(suite((name,)), 6, 5, exact, cohort=cohort)
    ]
    assert means(suite(), split) == means(suite(), blocks(suite(), 6, 5, exact))


@pytest.mark.parametrize("noisy", ["libpq", "asyncpg"])
@pytest.mark.parametrize("apart", [WORKS, WORKS[1:]])
def test_layers_of_different_cohorts_are_compared_through_a_third_variant(
    apart: tuple[str, ...], noisy: str
) -> None:
    """The machine was twice as slow for second cohorts. Noise of either layer is in its interval."""

    def times(of: Variant, block: int, round_: int) -> float:
        return exact(of, block, round_) * (1 + 0.01 * (block % 3) * (of.layer == noisy and of.route == "tcp"))

    variants, found = [], []
    for cohort, name in enumerate(WORKS):
        third, lower, upper = (
            replace(variant(layer, route), workload=name, named=True)
            for layer, route in (("libpq", "socket"), ("libpq", "tcp"), ("asyncpg", "tcp"))
        )
        variants += [third, lower, upper]
        if name in apart:
            found += blocks([third, lower], 6, 5, times, cohort=cohort)
            found += blocks(
                [third, upper], 6, 5, lambda *where: 2 * times(*where), cohort=cohort + len(WORKS)
            )
        else:
            found += blocks([third, lower, upper], 6, 5, times, cohort=cohort)
    (mean,) = means(variants, found, routes=("socket", "tcp")).values()
    assert (mean.layer, mean.workloads, mean.blocks, mean.sample) == ("asyncpg", WORKS, 6, "blocks")
    assert mean.ratio == pytest.approx(math.prod(RATIO["asyncpg"]) ** (1 / 3), rel=0.02)
    assert mean.low is not None
    assert mean.high is not None
    assert mean.high - mean.low > 0.01


def in_modes(guest_lacks: str = "") -> list[Variant]:
    """libpq in both modes, psycopg2 (here "psycopg") in simple only, asyncpg in prepared only."""
    modes = {"libpq": ("simple", "prepared"), "psycopg": ("simple",), "asyncpg": ("prepared",)}
    found = [replace(each, mode=mode) for each in suite() for mode in modes[each.layer]]
    return [each for each in found if (each.layer, each.workload) != ("asyncpg", guest_lacks)]


def in_both_modes(variants: list[Variant]) -> list[tuple[str, str, str, float, int]]:
    works = tuple(WorkloadDefinition(name, "") for name in WORKS)
    asked = replace(definition(), workloads=works, modes=("simple", "prepared"))
    fit = Fit.of(Measurements(blocks(variants, 6, 5, exact)), pairs(asked, variants, "psycopg"))
    return [
        (mean.base_mode, mean.layer, mean.mode, round(mean.ratio, 6), len(mean.workloads))
        for mean in geometric_means(asked, fit, variants)
    ]


def test_a_layer_that_lacks_a_mode_has_a_mean_in_a_mode_of_its_own() -> None:
    ratio = {layer: round(math.prod(RATIO[layer]) ** (1 / 3), 6) for layer in LAYERS}
    both = [
        (mode, layer, own, ratio[layer], 3)
        for mode in ("simple", "prepared")
        for layer, own in (("psycopg", "simple"), ("asyncpg", "prepared"))
    ]
    assert sorted(in_both_modes(in_modes())) == sorted(both)


def test_a_guest_that_lacks_a_workload_takes_it_from_no_layer() -> None:
    found = in_both_modes(in_modes(guest_lacks="wide"))
    assert [(mode, layer, count) for mode, layer, _own, _ratio, count in found if mode == "simple"] == [
        ("simple", "psycopg", 3)
    ]
    assert {count for mode, *_rest, count in found if mode == "prepared"} == {2}


def test_each_route_has_its_own() -> None:
    both = [replace(each, route=route) for route in ("socket", "tcp") for each in suite()]
    asked = replace(definition(), workloads=tuple(WorkloadDefinition(name, "") for name in WORKS))
    found = geometric_means(asked, fitted(blocks(both, 6, 5, exact)), both)
    assert [(mean.route, mean.layer) for mean in found] == [
        ("socket", "psycopg"), ("socket", "asyncpg"), ("tcp", "psycopg"), ("tcp", "asyncpg"),
    ]  # fmt: skip


def test_two_workloads_are_compared_and_have_none() -> None:
    pair = suite(WORKS[:2])
    assert means(pair, blocks(pair, 6, 5, exact), WORKS[:2]) == {}


@pytest.mark.parametrize(("count", "compared"), [(2, True), (3, False)])
def test_only_two_workloads_are_compared_with_each_other(count: int, compared: bool) -> None:
    variants = suite(WORKS[:count])
    works = tuple(WorkloadDefinition(name, "") for name in WORKS[:count])
    found = summarise(
        replace(definition(), workloads=works), variants, blocks(variants, 6, 5, exact), "psycopg"
    )
    pairs = [(row.variant, row.baseline) for row in found["comparisons"]]
    assert any(one.workload != other.workload for one, other in pairs) == compared
    assert len(found["geometric_means"]) == (0 if compared else 2)


def test_a_workload_in_which_requests_failed_counts_for_no_layer() -> None:
    variants = suite()
    works = tuple(WorkloadDefinition(name, "") for name in WORKS)
    requests = {"requests": 1000, "errors": {"status 502": 9}, "lengths": [10]}
    found = [
        replace(each, http=requests) if each.variant == variants[1] else each
        for each in blocks(variants, 6, 5, exact)
    ]
    summary = summarise(replace(definition(), workloads=works), variants, found, "psycopg")
    assert [mean["workloads"] for mean in summary["geometric_means"]] == [["many", "wide"]] * 2


@given(st.lists(st.floats(-0.2, 0.2), min_size=6, max_size=6), st.permutations(WORKS))
def test_it_scatters_with_the_blocks_and_not_with_the_order_of_workloads(
    noise: list[float], order: list[str]
) -> None:
    def times(of: Variant, block: int, round_: int) -> float:
        return exact(of, block, round_) * (math.exp(noise[block]) if of.layer == "psycopg" else 1.0)

    mean = means(suite(), blocks(suite(), 6, 3, times))["psycopg"]
    turned = suite(tuple(order))
    other = means(turned, blocks(turned, 6, 3, times), tuple(order))["psycopg"]
    assert other.ratio == pytest.approx(mean.ratio)
    assert mean.low is not None
    assert mean.high is not None
    assert math.exp(min(noise)) - 1e-9 <= mean.low <= mean.high <= math.exp(max(noise)) + 1e-9
