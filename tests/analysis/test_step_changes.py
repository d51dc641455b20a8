"""What each layer adds, in two runs: steps, Welch's interval, outcomes, and what is not compared."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from pgperf.analysis.ladder import Ladder, ladders
from pgperf.analysis.layer_groups import bases
from pgperf.analysis.outcome import DIFFERS, EQUIVALENT, INCONCLUSIVE
from pgperf.analysis.run_comparison import Level, levels, unpaired
from pgperf.analysis.step_changes import Added, LayerStep, StepChange, difference, other_grounds, steps
from pgperf.analysis.step_changes import step_changes as changes
from pgperf.core.records import Variant

from .synthetic import blocks, fitted, variant

LAYERS = ("libpq", "psycopg2", "psycopg", "django_cursor", "django_orm")
US = dict(zip(LAYERS, (60.0, 64.0, 70.0, 90.0, 210.0), strict=True))
#: Six blocks, a few per mille apart.
WAVE = (0.001, -0.002, 0.003, 0.0, -0.001, 0.002)


def run(shift: int = 0, layers: Sequence[str] = LAYERS, drift: float = 0.1, **more: float) -> list[LayerStep]:
    """The steps of a run, of whose layers some take so much `more`, µs. The machine drifts by 10 %
    from block to block.
    """
    us, asked = US | {layer: US[layer] + extra for layer, extra in more.items()}, [*map(variant, layers)]

    def times(of: Variant, number: int, round_: int) -> float:
        own = WAVE[(number + shift + LAYERS.index(of.layer)) % 6]
        slow = drift * math.sin(2.2 * (number + shift))
        return us[of.layer] * math.exp(slow + own + 0.002 * math.sin(round_ + number))

    return steps_of(asked, times)


def steps_of(asked: Sequence[Variant], times: Callable[[Variant, int, int], float]) -> list[LayerStep]:
    """As a later version reads them."""
    fit = fitted(blocks(asked, 6, 5, times))
    kept = [json.loads(json.dumps(level.to_json())) for level in levels(fit, asked, bases(asked))]
    stored = [json.loads(json.dumps(each.to_json())) for each in ladders(fit, asked, "psycopg")]
    return steps([*map(Level.from_json, kept)], [*map(Ladder.from_json, stored)])


def by_layer(found: Sequence[StepChange]) -> dict[str, StepChange]:
    return {change.variant.layer: change for change in found}


def ends(found: StepChange) -> tuple[float, float]:
    assert found.delta.low is not None
    assert found.delta.high is not None
    return found.delta.low, found.delta.high


def test_each_rung_stands_on_the_one_below_it() -> None:
    grounds = {step.level.variant.layer: step.below.variant.layer if step.below else None for step in run()}
    assert grounds == {
        "libpq": None, "psycopg": "libpq", "django_cursor": "psycopg", "django_orm": "django_cursor",
        "psycopg2": "libpq",
    }  # fmt: skip


def test_a_step_by_block_is_without_the_drift_of_the_machine() -> None:
    """Of the times it scatters by 7 %; of a step of 20 µs, by that share of 20 µs."""
    step = next(step for step in run() if step.level.variant.layer == "django_cursor")
    (by_block,) = step.added.by_block
    assert len(by_block) == 6
    assert step.added.us == pytest.approx(20.0, rel=0.05)
    assert all(abs(value - 20.0) < 3.0 for value in by_block)


def test_the_layer_that_became_slower_is_the_one_that_differs() -> None:
    """Ratios to libpq would differ for the cursor and the ORM above it."""
    found = by_layer(changes(run(drift=0.0), run(1, drift=0.0, django_cursor=9.0, django_orm=9.0)))
    assert found["django_cursor"].delta.centre == pytest.approx(9.0, abs=0.7)
    low, high = ends(found["django_cursor"])
    assert low < 9.0 < high
    assert high - low < 3.0
    assert {layer for layer, change in found.items() if change.outcome == DIFFERS} == {"django_cursor"}
    low, high = ends(found["django_orm"])
    assert low < 0 < high
    assert found["psycopg"].outcome == EQUIVALENT


def test_the_change_is_that_of_the_shown_steps() -> None:
    before, after = run(), run(2, django_orm=30.0)
    shown = {step.level.variant.layer: step.added.us for step in before}
    for change in changes(before, after):
        assert change.before == shown[change.variant.layer]
        assert change.delta.centre == pytest.approx(change.after - change.before)


def test_the_interval_is_welch_s() -> None:
    one, other = Added(5.0, ((4.0, 5.0, 6.0, 5.5),)), Added(9.0, ((8.0, 9.0, 11.0),), widening=1.05)
    found, plain = difference(one, other), unpaired(other.by_block, one.by_block)(0.95)
    assert found.centre == 4.0
    assert found.half_width() == pytest.approx(1.05 * (plain.half_width() or 0.0))


def test_the_other_way_round_is_the_opposite() -> None:
    one, other = run(), run(2, django_orm=30.0)
    for there, back in zip(changes(one, other), changes(other, one), strict=True):
        low, high = ends(there)
        assert ends(back) == pytest.approx((-high, -low))
        assert back.outcome == there.outcome


@pytest.mark.parametrize(
    ("before", "after", "doubted"),
    [
        ({}, {"django_orm": 0.13}, True),  # 30 of 240 µs, and the margin is 2
        ({}, {"django_orm": 0.05}, False),
        ({"django_orm": 0.9}, {}, False),  # which would make the increase larger
        ({"django_cursor": 0.4}, {}, True),  # on a cursor that took 54 µs, the first step was as long
        ({}, {"django_cursor": 0.9}, False),
        ({}, {"libpq": 0.9}, False),
    ],
)
def test_a_step_that_a_disturbance_may_explain_is_inconclusive(
    before: Mapping[str, float], after: Mapping[str, float], doubted: bool
) -> None:
    sides = disturbed(run(drift=0.0), before), disturbed(run(2, drift=0.0, django_orm=30.0), after)
    change = by_layer(changes(*sides))["django_orm"]
    assert change.is_doubted == doubted
    assert change.outcome == (INCONCLUSIVE if doubted else DIFFERS)


def test_an_equal_step_that_a_disturbance_may_have_made_is_inconclusive() -> None:
    quiet, loud = run(drift=0.0), disturbed(run(2, drift=0.0), {"django_orm": 0.2})
    assert by_layer(changes(quiet, run(2, drift=0.0)))["django_orm"].outcome == EQUIVALENT
    assert by_layer(changes(quiet, loud))["django_orm"].is_doubted


def disturbed(found: Sequence[LayerStep], shares: Mapping[str, float]) -> list[LayerStep]:
    labels = {variant(layer).label: share for layer, share in shares.items()}
    return [
        replace(
            step,
            level=step.level.with_disturbances(labels),
            below=step.below.with_disturbances(labels) if step.below else None,
        )
        for step in found
    ]


def test_a_rung_on_another_one_is_not_compared_but_told() -> None:
    whole, without = run(), run(layers=("libpq", "psycopg", "django_orm"))
    assert "django_orm" not in by_layer(changes(whole, without))
    (ground,) = other_grounds(whole, without)
    assert ground.before
    assert ground.after
    names = [each.layer for each in (ground.variant, ground.before, ground.after)]
    assert names == ["django_orm", "django_cursor", "psycopg"]
    assert other_grounds(whole, run()) == []


def test_the_lowest_rung_that_is_not_lowest_in_the_other_run_is_told() -> None:
    (ground,) = other_grounds(run(), run(layers=("psycopg", "django_cursor")))
    assert (ground.variant.layer, ground.after) == ("psycopg", None)


def test_steps_without_a_kept_level_are_left_out() -> None:
    found = run()
    kept = [step.level for step in found if step.level.variant.layer != "psycopg"]
    ladder = Ladder.from_json({**_ladder_of(found), "steps": [_rung(step) for step in found[:3]], "side": []})
    assert [step.level.variant.layer for step in steps(kept, [ladder])] == ["libpq"]


def _ladder_of(found: Sequence[LayerStep]) -> dict[str, object]:
    of = found[0].level.variant
    fields = ("workload", "route", "mode", "clients", "placement")
    return {name: getattr(of, name) for name in fields} | {"driver": "psycopg"}


def _rung(step: LayerStep) -> dict[str, object]:
    of, ends = step.level.variant, dict.fromkeys(("low", "high", "step_low_us", "step_high_us"))
    rest = dict.fromkeys(("ratio", "ratio_low", "ratio_high"), 1.0)
    return {"layer": of.layer, "label": of.label, "us": 1.0, "step_us": step.added.us, **ends, **rest}


def test_the_rungs_of_several_cohorts_keep_their_pairs() -> None:
    """The reference is in each cohort, and so has twice the blocks; the others still have all."""
    asked = [*map(variant, ("libpq", "psycopg", "django_cursor"))]
    reference, first, second = asked

    def times(of: Variant, number: int, round_: int) -> float:
        return US[of.layer] * math.exp(0.1 * math.sin(2.2 * number) + 0.002 * math.sin(round_))

    fit = fitted(
        each
        for cohort, upper in enumerate((first, second))
        for each in blocks([reference, upper], 6, 5, times, cohort)
    )
    found = steps(levels(fit, asked, bases(asked)), ladders(fit, asked, "psycopg"))
    assert [[len(values) for values in step.added.by_block] for step in found] == [[6], [6], [6]]
    assert {change.blocks for change in changes(found, found)} == {(6, 6)}


def web(shift: int, http_us: float, missing: int = 0) -> list[LayerStep]:
    """A view and a web server above it, which share no base."""
    view, http = variant("django_view"), variant("http", "gunicorn")
    us = {view: 900.0, http: http_us}

    def times(of: Variant, number: int, round_: int) -> float:
        return us[of] * math.exp(0.1 * math.sin(2.2 * number) + WAVE[(number + shift) % 6])

    fit = fitted(
        each for each in blocks([view, http], 6, 5, times) if each.variant == view or each.block >= missing
    )
    kept = levels(fit, [view, http], {})
    return steps(kept, ladders(fit, [view, http], "psycopg"))


@pytest.mark.parametrize(("missing", "samples"), [(0, 1), (1, 2)])
def test_rungs_without_a_common_base_have_the_differences_of_their_blocks(missing: int, samples: int) -> None:
    """Of other blocks, both samples: the interval is wider, since the drift does not cancel."""
    before, after = web(0, 1200.0, missing), web(2, 1300.0, missing)
    step = before[1]
    assert step.below
    assert (len(step.added.by_block), step.added.us) == (samples, pytest.approx(300.0, rel=0.02))
    change = changes(before, after)[1]
    low, high = ends(change)
    assert low < 100.0 < high
    assert (high - low < 100) == (samples == 1)


@pytest.mark.parametrize("lose", [False, True])
def test_rungs_that_lack_different_blocks_are_not_paired(lose: bool) -> None:
    """As many values, but of other blocks: a slice with a failed request counts for neither."""
    view, http, whole = variant("django_view"), variant("http", "gunicorn"), variant("libpq", "tcp")
    us = {view: 900.0, http: 1200.0, whole: 50.0}
    lost = {(view, 5), (http, 0)} if lose else set()

    def times(of: Variant, number: int, round_: int) -> float:
        return us[of] * math.exp(0.1 * math.sin(2.2 * number))

    fit = fitted(
        each for each in blocks([view, http, whole], 6, 5, times) if (each.variant, each.block) not in lost
    )
    found = steps(levels(fit, [view, http, whole], {}), ladders(fit, [view, http], "psycopg"))
    assert [len(values) for values in found[1].added.by_block] == ([5, 5] if lose else [6])


def test_workloads_tell_steps_apart_only_where_a_run_has_several() -> None:
    def named(found: Sequence[LayerStep], workload: str, *, named: bool) -> list[LayerStep]:
        def of(level: Level) -> Level:
            return replace(level, variant=replace(level.variant, workload=workload, named=named))

        return [
            replace(step, level=of(step.level), below=of(step.below) if step.below else None)
            for step in found
        ]

    one = named(run(), "a", named=False)
    assert len(changes(one, named(run(), "b", named=False))) == 5
    assert len(changes(one, named(run(), "a", named=True))) == 5
    assert changes(one, named(run(), "b", named=True)) == []
