"""Which slices are set against which, and what cancels."""

import math

import numpy as np
import pytest

from pgperf.analysis.paired_comparisons import Measurements, ops_per_s
from pgperf.analysis.samples import difference, interval
from pgperf.core.records import Variant, VariantBlock

from .synthetic import block, blocks, piece, variant

LIBPQ, ORM, CURSOR = variant("libpq"), variant("django_orm"), variant("django_cursor")


def test_known_ratio_and_difference() -> None:
    found = Measurements(blocks([LIBPQ, ORM], 6, 5, lambda v, b, r: 200.0 if v == ORM else 50.0)).paired(
        ORM, LIBPQ
    )
    assert found
    assert found.log.at(0.95).exp().centre == pytest.approx(4.0)
    assert found.delta.at(0.95).centre == pytest.approx(150.0)
    assert (found.log.kind, found.log.pairs) == ("blocks", 30)


def test_drift_that_a_pair_shares_cancels() -> None:
    """The machine gets three times slower and back; each variant's own times say nothing, the ratio
    is exact.
    """
    drift = np.exp(np.random.default_rng(5).normal(0, 0.5, (6, 5)))
    measured = Measurements(
        blocks([LIBPQ, ORM], 6, 5, lambda v, b, r: drift[b, r] * (63.0 if v == ORM else 60.0))
    )
    found = measured.paired(ORM, LIBPQ)
    assert found
    ratio = found.log.at(0.95).exp()
    assert (ratio.low, ratio.centre, ratio.high) == pytest.approx((1.05, 1.05, 1.05))
    assert (interval(measured.level(ORM, measured.time)).half_width() or 0) > 0.2


def test_swapping_the_two_inverts_the_ratio() -> None:
    rng = np.random.default_rng(6)
    measured = Measurements(blocks([LIBPQ, ORM], 6, 5, lambda v, b, r: rng.lognormal(4, 0.1)))
    one, other = measured.paired(ORM, LIBPQ), measured.paired(LIBPQ, ORM)
    assert one
    assert other
    assert one.log.at(0.95).high == pytest.approx(-(other.log.at(0.95).low or 0))


def test_only_slices_of_the_same_round_are_pairs() -> None:
    measured = Measurements(
        [
            VariantBlock(variant=LIBPQ, cohort=0, block=0, slices=(piece(10, 0), piece(20, 1), piece(30, 2))),
            VariantBlock(variant=ORM, cohort=0, block=0, slices=(piece(60, 2), piece(40, 1))),
            block(LIBPQ, 1, [10, 10]),
            block(ORM, 2, [99, 99]),
        ]
    )
    found = measured.paired(ORM, LIBPQ)
    assert found
    assert found.log.pairs == 2
    assert found.log.kind == "rounds"
    assert found.log.at(0.95).exp().centre == pytest.approx(2.0)


def test_slices_without_an_operation_are_left_out() -> None:
    dead = VariantBlock(
        variant=LIBPQ,
        cohort=0,
        block=0,
        slices=(piece(1, 0, ops=0), piece(math.inf, 1, ops=1), piece(0.0, 2, ops=1)),
    )
    measured = Measurements([dead, block(ORM, 0, [5, 5, 5])])
    assert LIBPQ not in measured
    assert measured.paired(ORM, LIBPQ) is None


def test_cohorts_are_compared_through_the_reference_they_share() -> None:
    """The machine was twice as slow for the second cohort: only the shared reference can tell."""

    def times(of: Variant, number: int, round_: int) -> float:
        return {LIBPQ: 50.0, CURSOR: 75.0, ORM: 150.0}[of] * math.exp(0.01 * math.sin(7 * number + round_))

    measured = Measurements(
        [
            *blocks([LIBPQ, CURSOR], 6, 5, times, cohort=0),
            *blocks([LIBPQ, ORM], 6, 5, lambda *where: 2 * times(*where), cohort=1),
        ]
    )
    found = measured.paired(ORM, CURSOR)
    assert found
    assert found.log.at(0.95).exp().centre == pytest.approx(2.0)
    assert (found.log.kind, found.log.pairs) == ("blocks", 30)


def test_an_indirect_interval_is_wider_than_either_side() -> None:
    rng = np.random.default_rng(7)
    noisy = [
        *blocks([LIBPQ, CURSOR], 6, 5, lambda *where: rng.lognormal(4, 0.02), cohort=0),
        *blocks([LIBPQ, ORM], 6, 5, lambda *where: rng.lognormal(4, 0.02), cohort=1),
    ]
    measured = Measurements(noisy)
    sides = [measured.paired(CURSOR, LIBPQ), measured.paired(ORM, LIBPQ)]
    indirect = measured.paired(ORM, CURSOR)
    assert indirect
    cursor, orm = (side.log.at(0.95) for side in sides if side)
    assert indirect.log.at(0.95) == difference(orm, cursor)
    assert (indirect.log.at(0.95).half_width() or 0) >= math.hypot(
        cursor.half_width() or 0, orm.half_width() or 0
    )


def test_variants_without_a_shared_cohort_are_not_compared() -> None:
    measured = Measurements([block(LIBPQ, 0, [1.0], cohort=0), block(ORM, 0, [1.0], cohort=1)])
    assert measured.paired(ORM, LIBPQ) is None


def test_level_of_another_measure() -> None:
    measured = Measurements(blocks([LIBPQ], 2, 3, lambda v, b, r: 50.0))
    assert interval(measured.level(LIBPQ, ops_per_s)).centre == pytest.approx(math.log(20_000))
    with pytest.raises(KeyError):
        measured.level(ORM, ops_per_s)
