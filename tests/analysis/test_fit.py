"""One fit: figures that agree, robust against strays, with missing blocks and across cohorts."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis.fit import Fit
from pgperf.analysis.outcome import CONFIDENCE
from pgperf.analysis.paired_comparisons import Measurements, ops_per_s
from pgperf.core.records import Variant, VariantBlock

from .synthetic import block, blocks, fitted, piece, variant

LAYERS = ("libpq", "psycopg", "django_cursor", "django_orm")
VARIANTS = [variant(layer) for layer in LAYERS]
LIBPQ, PSYCOPG, CURSOR, ORM = VARIANTS
US = dict(zip(VARIANTS, (60.0, 70.0, 90.0, 210.0), strict=True))


def exact(of: Variant, number: int, round_: int) -> float:
    return US[of]


def wild(seed: int, rounds: int, present: float) -> list[VariantBlock]:
    """Heavy-tailed times of a drifting machine, of which some blocks are missing."""
    rng = np.random.default_rng(seed)
    drift = rng.lognormal(0, 0.3, 7)
    return [
        block(of, number, US[of] * drift[number] * np.exp(0.03 * rng.standard_t(2, rounds)))
        for number in range(7)
        for of in VARIANTS
        if rng.random() < present
    ]


@given(st.integers(0, 10_000), st.integers(1, 4), st.sampled_from((0.3, 0.7, 1.0)))
def test_ratios_are_quotients_and_steps_are_differences(seed: int, rounds: int, present: float) -> None:
    fit = fitted(wild(seed, rounds, present))
    for one, other in combinations(fit.logs, 2):
        found = fit.paired(one, other)
        if found is None:
            continue
        ratio, step = found.log.at(CONFIDENCE).exp(), found.delta.at(CONFIDENCE)
        assert ratio.centre == pytest.approx(fit.value(one) / fit.value(other))
        assert step.centre == pytest.approx(fit.value(one) - fit.value(other))
        if ratio.low is not None and ratio.high is not None:
            assert ratio.low <= ratio.centre * (1 + 1e-9)
            assert ratio.high >= ratio.centre * (1 - 1e-9)


def test_comparisons_that_agree_are_kept() -> None:
    fit = fitted(blocks(VARIANTS, 6, 5, exact))
    assert {of: fit.value(of) for of in VARIANTS} == pytest.approx(US)


def test_a_fit_of_one_comparison_is_that_comparison() -> None:
    rng = np.random.default_rng(3)
    measured = Measurements(blocks([LIBPQ, ORM], 6, 5, lambda *_where: rng.lognormal(4, 0.2)))
    found, own = Fit.of(measured, [(ORM, LIBPQ)]).paired(ORM, LIBPQ), measured.paired(ORM, LIBPQ)
    assert found
    assert own
    assert found.log.at(CONFIDENCE).centre == pytest.approx(own.log.at(CONFIDENCE).centre)


def test_a_noisy_variant_does_not_disturb_the_comparison_of_two_quiet_ones() -> None:
    """The cursor and the ORM are known to each other to a per mille, libpq varies by a half."""
    rng = np.random.default_rng(4)
    noise = {LIBPQ: 0.5, CURSOR: 0.001, ORM: 0.001}
    measured = Measurements(blocks(noise, 6, 5, lambda of, *_: US[of] * rng.lognormal(0, noise[of])))
    found = Fit.of(measured, [(CURSOR, LIBPQ), (ORM, LIBPQ), (ORM, CURSOR)]).paired(ORM, CURSOR)
    assert found
    assert found.log.at(CONFIDENCE).exp().centre == pytest.approx(210 / 90, rel=0.002)


def test_a_comparison_without_scatter_counts_most() -> None:
    """Two noisy comparisons of the ORM disagree by a tenth; the cursor is exactly 1.5 times libpq."""

    def noisy(of: Variant, number: int, round_: int) -> float:
        return US[of] * (1 + 0.02 * (number % 3) * (of == ORM))

    found = [
        *blocks([LIBPQ, CURSOR], 6, 1, exact),
        *blocks([CURSOR, ORM], 6, 1, noisy, cohort=1),
        *blocks([LIBPQ, ORM], 6, 1, lambda of, *where: noisy(of, *where) * (1 + 0.1 * (of == ORM)), cohort=2),
    ]
    fit = Fit.of(Measurements(found), [(CURSOR, LIBPQ), (ORM, CURSOR), (ORM, LIBPQ)])
    assert fit.value(CURSOR) / fit.value(LIBPQ) == pytest.approx(1.5, rel=0.001)


def test_a_variant_of_one_block_does_not_move_those_of_many() -> None:
    """Its processes may differ from others by some per cent, which one block cannot show."""
    many = blocks(
        [LIBPQ, CURSOR], 6, 5, lambda of, number, _: US[of] * (1 + 0.01 * (number % 3) * (of == CURSOR))
    )
    pairs = [(CURSOR, LIBPQ), (ORM, LIBPQ), (ORM, CURSOR)]
    alone = Fit.of(Measurements(many), pairs)
    fit = Fit.of(Measurements([*many, block(ORM, 5, [210.0] * 5)]), pairs)
    for of in (LIBPQ, CURSOR):
        assert fit.logs[of] - fit.logs[LIBPQ] == pytest.approx(alone.logs[of] - alone.logs[LIBPQ], abs=0.005)


def test_a_variant_of_slow_blocks_only_keeps_its_ratio() -> None:
    """The second half of the run was three times slower. The ORM was measured there only."""
    found = [
        block(of, number, [US[of] * (3 if number >= 3 else 1)] * 3)
        for number in range(6)
        for of in (LIBPQ, CURSOR, ORM)
        if of != ORM or number >= 3
    ]
    fit = fitted(found)
    assert fit.value(ORM) / fit.value(LIBPQ) == pytest.approx(3.5)
    assert 60 < fit.value(LIBPQ) < 180


def test_cohorts_are_connected_by_their_common_variant() -> None:
    fit = fitted(
        [
            *blocks([LIBPQ, CURSOR], 6, 2, exact),
            *blocks([LIBPQ, ORM], 6, 2, lambda *w: 2 * exact(*w), cohort=1),
        ]
    )
    assert fit.value(ORM) / fit.value(CURSOR) == pytest.approx(210 / 90)


def test_variants_that_share_nothing_keep_their_own_times() -> None:
    fit = fitted([block(LIBPQ, 0, [50.0]), block(ORM, 1, [200.0])])
    assert (fit.value(LIBPQ), fit.value(ORM)) == pytest.approx((50.0, 200.0))
    assert fit.paired(ORM, LIBPQ) is None


def test_nothing_measured_is_a_fit_of_nothing() -> None:
    fit = fitted([])
    assert LIBPQ not in fit
    assert dict(fit.logs) == {}


def test_throughput_is_fitted_by_itself() -> None:
    measured = Measurements(blocks([LIBPQ, ORM], 6, 3, exact))
    fit = Fit.of(measured, [(ORM, LIBPQ)], ops_per_s)
    assert fit.value(LIBPQ) == pytest.approx(1e6 / 60, rel=1e-3)
    assert math.exp(fit.logs[ORM] - fit.logs[LIBPQ]) == pytest.approx(60 / 210, rel=1e-3)


def test_a_layer_that_times_nothing_makes_all_times_of_the_run_plain_means() -> None:
    """pgbench counts its transactions: an interruption counts in full, on both sides."""
    pgbench = variant("pgbench")
    fit = fitted(blocks([LIBPQ, pgbench], 6, 3, lambda of, *_: 50.0 if of == pgbench else 40.0))
    assert fit.value(pgbench) / fit.value(LIBPQ) == pytest.approx(1.25, rel=1e-3)
    assert fit.measure is not Measurements(blocks([LIBPQ], 1, 1, exact)).time


def test_an_open_loop_beside_pgbench_keeps_its_service_time() -> None:
    """Its clients wait for their schedule: 200 operations/s of 40 µs are not one of 5,000 µs."""
    pgbench, opened = variant("pgbench"), replace(LIBPQ, rate=200.0, schedule="constant")
    found = blocks([LIBPQ, pgbench], 6, 3, lambda of, *_: 50.0 if of == pgbench else 40.0)
    pieces = tuple(piece(40.0, round_, ops=40) for round_ in range(3))
    found += [VariantBlock(variant=opened, cohort=0, block=at, slices=pieces) for at in range(6)]
    fit = fitted(found)
    assert fit.value(opened) == pytest.approx(40.0, rel=0.01)
    assert fit.value(pgbench) / fit.value(LIBPQ) == pytest.approx(1.25, rel=1e-3)
