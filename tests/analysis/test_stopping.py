"""When a run knows enough: looks, wider intervals, and the precision that it has reached."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis import stopping
from pgperf.analysis.paired_comparisons import Measurements
from pgperf.analysis.paired_statistics import Estimate
from pgperf.analysis.summary import summarise
from pgperf.core.limits import BLOCKS, LEAST_BLOCKS
from pgperf.core.records import Definition, Variant, VariantBlock, WorkloadDefinition
from tests.analysis.synthetic import blocks, definition, variant

FIXED = definition(blocks=10)
STOPPING = replace(FIXED, precision=2.0)
LIBPQ, ORM = variant("libpq"), variant("django_orm")


def noisy(scatter: float, count: int = 6, seed: int = 1) -> list[VariantBlock]:
    rng = np.random.default_rng(seed)
    drawn = {key: rng.normal(0, scatter) for key in range(count)}
    return blocks([LIBPQ, ORM], count, 3, lambda of, b, r: 100 * math.exp(drawn[b] if of == ORM else 0))


def test_a_guest_of_a_mode_counts_for_the_precision_of_a_suite() -> None:
    """psycopg2 has mode simple only, and stands beside the prepared statements of libpq, whose slices
    scatter.
    """
    names, rng = ("one", "many", "wide"), np.random.default_rng(1)
    asked = replace(
        STOPPING, workloads=tuple(WorkloadDefinition(name, "SELECT 1") for name in names),
        layers=("libpq", "psycopg2"), modes=("simple", "prepared"),
    )  # fmt: skip
    modes = {"libpq": ("simple", "prepared"), "psycopg2": ("simple",)}
    variants = [
        replace(variant(layer, mode=mode), workload=name)
        for name in names
        for layer, own in modes.items()
        for mode in own
    ]
    drawn = rng.normal(0, 0.05, 6)
    measured = blocks(variants, 6, 3, lambda of, b, r: 100 * math.exp(drawn[b] * (of.mode == "prepared")))
    reached = stopping.reached(asked, measured)
    assert reached is not None
    assert reached > 0.02


def test_no_run_looks_before_six_blocks_and_each_look_has_a_third_more() -> None:
    looks = list(stopping.WIDENING)
    assert looks[0] == LEAST_BLOCKS
    assert looks[-1] < BLOCKS.high
    assert all(1.2 < later / earlier < 1.4 for earlier, later in pairwise(looks))
    assert [n for n in range(30) if stopping.is_look(n)] == [6, 8, 11, 15, 20, 27]


@given(st.integers(1, 100))
def test_intervals_are_wider_in_runs_that_may_stop_early_only(count: int) -> None:
    assert stopping.widening(FIXED, count) == 1.0
    assert stopping.widening(replace(FIXED, budget_s=60), count) == 1.0
    assert stopping.widening(replace(STOPPING, blocks=5), count) == 1.0
    assert 1.0 < stopping.widening(STOPPING, count) < 1.1


@given(st.floats(-9, 9), st.floats(0, 5), st.floats(0, 5), st.floats(1, 2))
def test_a_widened_interval_keeps_its_centre_and_its_asymmetry(
    centre: float, below: float, above: float, factor: float
) -> None:
    plain = Estimate(centre, centre - below, centre + above, 6, 0.95)
    wider = plain.widened(factor)
    assert wider.centre == centre
    assert wider.low is not None
    assert wider.high is not None
    assert centre - wider.low == pytest.approx(factor * below, abs=1e-9)
    assert wider.high - centre == pytest.approx(factor * above, abs=1e-9)
    assert Estimate(centre, None, None, 1, 0.0).widened(factor).low is None


def test_the_precision_is_that_of_the_widest_ratio_with_its_base() -> None:
    measured = noisy(0.01)
    direct = Measurements(measured, stopping.factor(6)).paired(ORM, LIBPQ)
    assert direct
    assert stopping.reached(STOPPING, measured) == pytest.approx(direct.log.at(0.95).half_width())
    plain, wider = stopping.reached(FIXED, measured), stopping.reached(STOPPING, measured)
    assert plain
    assert wider == pytest.approx(plain * stopping.factor(6))


def test_more_scatter_is_less_precise_and_one_block_has_no_precision_over_blocks() -> None:
    few, much = (stopping.reached(STOPPING, noisy(scatter)) for scatter in (0.002, 0.05))
    assert few
    assert much
    assert few < 0.02 < much
    assert stopping.reached(STOPPING, []) is None


def test_a_single_variant_is_compared_with_its_control() -> None:
    control = replace(ORM, control=1)
    measured = blocks([ORM, control], 6, 3, lambda of, b, r: 100 + b * bool(of.control))
    found = stopping.reached(STOPPING, measured)
    assert found
    assert found > 0


@pytest.mark.parametrize(("may_stop", "factor"), [(False, 1.0), (True, stopping.factor(7))])
def test_a_summary_has_the_widths_of_its_looks(may_stop: bool, factor: float) -> None:
    """Stored runs of a fixed length are analysed as ever."""
    measured = noisy(0.01, 7)
    plain = _widths(FIXED, measured)
    found = _widths(STOPPING if may_stop else FIXED, measured)
    assert found == pytest.approx([factor * width for width in plain])


def _widths(definition: Definition, measured: list[VariantBlock]) -> list[float]:
    variants: list[Variant] = [LIBPQ, ORM]
    (comparison,) = summarise(definition, variants, measured, "psycopg")["comparisons"]
    return [math.log(comparison.high / comparison.ratio), math.log(comparison.ratio / comparison.low)]
