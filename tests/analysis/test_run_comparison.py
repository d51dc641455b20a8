"""Two runs, block by block: Welch's interval, both measures, outcomes, and what a run keeps."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pgperf.analysis.fit import Fit
from pgperf.analysis.layer_groups import bases
from pgperf.analysis.paired_statistics import hodges_lehmann
from pgperf.analysis.run_comparison import OVER, TIME, Change, Level, changes, levels, unpaired
from pgperf.core.records import Variant

from .synthetic import block, blocks, fitted, variant

LIBPQ, ORM = variant("libpq"), variant("django_orm")
#: Six blocks, a few per mille apart.
WAVE = (0.001, -0.002, 0.003, 0.0, -0.001, 0.002)


def run(orm: float = 200.0, libpq: float = 60.0, machine: float = 1.0, shift: int = 0) -> list[Level]:
    """What a run of two layers keeps; the machine drifts by 10 % from block to block, for both
    alike.
    """

    def times(of: Variant, number: int, round_: int) -> float:
        us = libpq if of == LIBPQ else orm
        drift = machine * math.exp(0.1 * math.sin(2.2 * (number + shift)))
        own = WAVE[(number + shift + (of == ORM)) % 6]
        return us * drift * math.exp(own + 0.002 * math.sin(round_ + number))

    measured = fitted(blocks([LIBPQ, ORM], 6, 5, times))
    return [Level.from_json(json.loads(json.dumps(level.to_json()))) for level in kept(measured)]


def kept(measured: Fit) -> list[Level]:
    return levels(measured, [LIBPQ, ORM], bases([LIBPQ, ORM]))


def by_name(changes: list[Change]) -> dict[tuple[str, str], Change]:
    return {(change.variant.layer, change.measure): change for change in changes}


def test_a_slower_machine_cancels_over_libpq() -> None:
    found = by_name(changes(run(), run(machine=1.3, shift=2)))
    assert found["django_orm", TIME].ratio.centre == pytest.approx(1.3, rel=0.05)
    assert found["django_orm", OVER].ratio.centre == pytest.approx(1.0, abs=0.005)
    assert found["django_orm", OVER].outcome == "equivalent"
    assert ("libpq", OVER) not in found


def test_a_slower_orm_shows_in_both() -> None:
    found = by_name(changes(run(), run(orm=220.0, shift=2)))
    over = found["django_orm", OVER]
    assert over.outcome == "differs"
    assert over.ratio.low is not None
    assert over.ratio.high is not None
    assert over.ratio.low < 1.1 < over.ratio.high
    assert over.before == pytest.approx(200 / 60, rel=0.01)
    assert over.delta.centre == pytest.approx(20, rel=0.25)
    assert over.is_worse_by(0.05)
    assert not over.is_worse_by(0.15)


@pytest.mark.parametrize(
    ("before", "after", "doubted"),
    [
        ({}, {"django_orm": 0.3}, True),  # the second run's time may be a third less
        ({}, {"django_orm": 0.16}, False),
        ({"django_orm": 0.9}, {}, False),  # which would make the increase larger
        ({}, {"libpq": 0.9}, False),
        ({"libpq": 0.3}, {}, True),  # over a libpq that took less, the first ORM was as slow
        ({"libpq": 0.2}, {"django_orm": 0.2}, True),
        ({}, {"django_orm": 1.0}, True),
        ({}, {"django_orm": 0.223}, True),  # what is left may be within the margin
    ],
)
def test_a_difference_that_a_disturbance_may_explain_is_inconclusive(
    before: dict[str, float], after: dict[str, float], doubted: bool
) -> None:
    earlier, later = run(), run(orm=260.0, shift=2)
    change = by_name(changes(disturbed(earlier, before), disturbed(later, after)))["django_orm", OVER]
    assert change.ratio == by_name(changes(earlier, later))["django_orm", OVER].ratio
    assert change.is_doubted == doubted
    assert change.outcome == ("inconclusive" if doubted else "differs")
    assert change.is_worse_by(0.05) != doubted
    assert change.may_be_worse_by(0.05) == doubted
    back = by_name(changes(disturbed(later, after), disturbed(earlier, before)))["django_orm", OVER]
    assert back.is_doubted == doubted


@pytest.mark.parametrize("side", ["before", "after"])
def test_an_equality_that_a_disturbance_may_have_made_is_inconclusive(side: str) -> None:
    quiet, loud = run(), disturbed(run(shift=2), {"django_orm": 0.2})
    pair = (quiet, loud) if side == "after" else (loud, quiet)
    assert by_name(changes(quiet, run(shift=2)))["django_orm", OVER].outcome == "equivalent"
    change = by_name(changes(*pair))["django_orm", OVER]
    assert (change.outcome, change.is_doubted) == ("inconclusive", True)
    assert change.may_be_worse_by(0.05) == (side == "before")


@pytest.mark.parametrize(("share", "limit", "others"), [(0.1, 0.25, True), (0.0, 0.3, False)])
def test_what_leaves_a_limit_undecided(share: float, limit: float, others: bool) -> None:
    later = disturbed(run(orm=260.0, shift=2), {"django_orm": share})
    change = by_name(changes(run(), later))["django_orm", OVER]
    assert not change.is_doubted
    assert not change.is_worse_by(limit)
    assert change.may_be_worse_by(limit)
    assert change.others_may_explain(limit) == others


def test_a_disturbed_libpq_does_not_count_for_the_time() -> None:
    later = disturbed(run(orm=260.0, shift=2), {"libpq": 0.9})
    assert by_name(changes(run(), later))["django_orm", TIME].outcome == "differs"


def disturbed(levels: list[Level], shares: dict[str, float]) -> list[Level]:
    labels = {of.layer: of.label for of in (LIBPQ, ORM)}
    return [
        level.with_disturbances({labels[layer]: share for layer, share in shares.items()}) for level in levels
    ]


def test_faster_is_never_worse() -> None:
    found = changes(run(), run(orm=150.0))
    assert any(change.outcome == "differs" for change in found)
    assert not any(change.is_worse_by(0.0) for change in found)


def test_the_other_way_round_is_the_inverse() -> None:
    there, back = changes(run(), run(orm=230.0, shift=1)), changes(run(orm=230.0, shift=1), run())
    for one, other in zip(there, back, strict=True):
        assert one.ratio.centre * other.ratio.centre == pytest.approx(1)
        assert one.ratio.low is not None
        assert other.ratio.high is not None
        assert one.ratio.low * other.ratio.high == pytest.approx(1)
        assert one.delta.centre == pytest.approx(-other.delta.centre)
        assert one.outcome == other.outcome


@pytest.mark.parametrize("count", [1, 6])
def test_the_reference_of_several_cohorts_keeps_one_value_for_each_block(count: int) -> None:
    """The machine was four times as slow for the second cohort."""
    found = [
        *blocks([LIBPQ], count, 5, lambda *_where: 60.0),
        *blocks([LIBPQ, ORM], count, 5, lambda of, *_where: 240.0 if of == LIBPQ else 800.0, cohort=1),
    ]
    reference, orm = kept(fitted(found))
    assert reference.log_us[0] == pytest.approx((math.log(120.0),) * count)
    assert [len(orm.log_us[0]), len(orm.log_over[0])] == [count, count]


def test_one_block_gives_no_interval() -> None:
    measured = fitted([block(LIBPQ, 0, [60, 61, 62]), block(ORM, 0, [200, 201, 202])])
    one = kept(measured)
    for change in changes(run(), one):
        assert (change.ratio.low, change.outcome, change.mde) == (None, "inconclusive", None)
        assert change.blocks == (6, 1)


def test_variants_of_one_run_only_are_left_out() -> None:
    assert [change.variant.layer for change in changes(run()[:1], run())] == ["libpq"]
    assert changes(run()[:1], run()[1:]) == []


def test_another_base_is_not_compared() -> None:
    other = [replace(level, base_layer="psycopg") for level in run()]
    assert {change.measure for change in changes(run(), other)} == {TIME}


def test_a_third_variant_between_two_cohorts() -> None:
    """Both distances to the shared variant are kept, and both count."""
    shared = variant("libpq", "tcp")
    first = blocks([LIBPQ, shared], 6, 3, lambda of, n, r: 60 if of == LIBPQ else 70 + 0.1 * n)
    second = blocks([ORM, shared], 6, 3, lambda of, n, r: 200 + n if of == ORM else 70, cohort=1)
    level = levels(fitted([*first, *second]), [LIBPQ, ORM], {ORM: LIBPQ})[1]
    assert len(level.log_over) == 2
    same = changes([level], [level])[1]
    assert (same.measure, same.ratio.centre, same.delta.centre) == (OVER, 1.0, 0.0)
    assert same.before == pytest.approx(200 / 60, rel=0.03)


def test_unpaired_is_welch_s_interval() -> None:
    """Against scipy's, with Hodges-Lehmann centres and their error in place of means."""
    rng = np.random.default_rng(3)
    one, other = rng.normal(5, 1, 6), rng.normal(4, 3, 10)
    found = unpaired((tuple(one),), (tuple(other),))(0.95)
    assert found.centre == pytest.approx(hodges_lehmann(one) - hodges_lehmann(other))
    reference = stats.ttest_ind(one, other, equal_var=False)
    half = (reference.confidence_interval().high - reference.confidence_interval().low) / 2
    t_ratio = stats.t.ppf(0.975, math.floor(reference.df)) / stats.t.ppf(0.975, reference.df)
    assert found.half_width() == pytest.approx(half * math.sqrt(math.pi / 3) * t_ratio, rel=1e-6)


def half_of_log(change: Change) -> float:
    return math.log((change.ratio.high or 0.0) / (change.ratio.low or 1.0)) / 2


@pytest.mark.parametrize("which", [0, 1])
def test_a_run_that_may_stop_early_widens_the_interval(which: int) -> None:
    sides = [run(), run(orm=220.0, shift=2)]
    plain = by_name(changes(*sides))["django_orm", OVER]
    sides[which] = [replace(level, widening=1.08) for level in sides[which]]
    wider = by_name(changes(*sides))["django_orm", OVER]
    assert plain.delta.half_width()
    assert wider.delta.half_width() == pytest.approx(1.08 * (plain.delta.half_width() or 0.0))
    assert half_of_log(wider) == pytest.approx(1.08 * half_of_log(plain))


def test_an_interval_without_an_end_is_none() -> None:
    """Two blocks as far apart as a file may have them."""
    far = [replace(level, log_over=((-70.0, 70.0),)) for level in run()]
    found = by_name(changes(far, run()))["django_orm", OVER]
    assert (found.ratio.low, found.ratio.high, found.outcome) == (None, None, "inconclusive")
    assert found.ratio.centre == pytest.approx(1.0)
    assert found.most is None


def test_a_run_keeps_the_factor_of_its_looks() -> None:
    level = replace(run()[0], widening=1.07)
    stored = level.to_json()
    assert Level.from_json(stored) == level
    del stored["widening"]  # as earlier versions did
    assert Level.from_json(stored).widening == 1.0
    for wrong in (0.5, 9.0, float("nan"), None):
        with pytest.raises((ValueError, TypeError)):
            Level.from_json({**stored, "widening": wrong})


def test_a_base_without_workers_has_a_client_for_each_connection() -> None:
    psycopg = replace(variant("psycopg"), clients=2, workers=5)
    level = replace(run()[1], variant=psycopg, base_layer="libpq")
    assert level.base == replace(variant("libpq"), clients=10, workers=1)
    assert level.with_disturbances({str(level.base.label): 0.3}).base_disturbed == 0.3
    assert replace(level, base_layer="psycopg2").base == replace(psycopg, layer="psycopg2")


def test_no_spread_is_no_interval_to_speak_of() -> None:
    found = unpaired(((1.0, 1.0),), ((3.0, 3.0),))(0.95)
    assert (found.centre, found.low, found.high) == (-2.0, -2.0, -2.0)


def of_workload(name: str, *, named: bool) -> list[Level]:
    return [
        replace(level, variant=replace(level.variant, workload=name, named=named)) for level in run(shift=2)
    ]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (of_workload("a", named=False), of_workload("b", named=False), 2),  # one each, under new names
        (of_workload("a", named=True), of_workload("a", named=False), 2),
        (of_workload("a", named=False), of_workload("a", named=True), 2),
        (of_workload("a", named=True), of_workload("b", named=True), 0),
        (of_workload("a", named=True), of_workload("b", named=False), 0),
    ],
)
def test_a_run_of_several_workloads_is_compared_workload_by_workload(
    before: list[Level], after: list[Level], found: int
) -> None:
    assert len([each for each in changes(before, after) if each.measure == TIME]) == found
