"""Steps that add up, with rungs missing, with side rungs, from exact and from noisy times."""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from pgperf.analysis.fit import Fit
from pgperf.analysis.ladder import Ladder, climbs, ladders
from pgperf.core.records import Variant

from .synthetic import block, blocks, fitted, variant

LAYERS = ("libpq", "psycopg2", "psycopg", "django_cursor", "django_orm")
US = {"libpq": 60.0, "psycopg2": 64.0, "psycopg": 70.0, "django_cursor": 90.0, "django_orm": 210.0}
VARIANTS = [variant(layer) for layer in LAYERS]
ON_PSYCOPG2 = {"django_cursor_psycopg2": 80.0, "django_orm_psycopg2": 190.0}
ALL_US = {**US, **ON_PSYCOPG2, "asyncpg": 50.0}


def exact(of: Variant, number: int, round_: int) -> float:
    return ALL_US[of.layer]


def noisy(seed: int = 1):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    return lambda of, number, round_: ALL_US[of.layer] * rng.lognormal(0, 0.03)


def ladder(fit: Fit, variants: Sequence[Variant], django_driver: str) -> Ladder | None:
    """The one ladder there is, if any."""
    found = ladders(fit, variants, django_driver)
    assert len(found) < 2
    return found[0] if found else None


def test_a_ladder_knows_the_most_workers_of_a_process() -> None:
    """libpq has ten processes, where the others have one with ten workers."""
    many = [
        replace(each, clients=10) if each.layer == "libpq" else replace(each, workers=10) for each in VARIANTS
    ]
    found = ladder(fitted(blocks(many, 6, 5, exact)), many, "psycopg")
    assert found
    assert (found.clients, found.workers) == (10, 10)
    assert all(map(found.has, many))
    assert not any(found.has(replace(each, clients=10, workers=1)) for each in many if each.layer != "libpq")


def test_known_steps() -> None:
    found = ladder(fitted(blocks(VARIANTS, 6, 5, exact)), VARIANTS, "psycopg")
    assert found
    assert {key: getattr(found, key) for key in ("route", "mode", "clients", "placement", "driver")} == {
        "route": "socket", "mode": "simple", "clients": 1, "placement": "apart", "driver": "psycopg",
    }  # fmt: skip
    steps = found.steps
    assert [step.layer for step in steps] == ["libpq", "psycopg", "django_cursor", "django_orm"]
    assert steps[0].label == "libpq · socket"
    assert [step.us for step in steps] == pytest.approx([60, 70, 90, 210])
    assert [step.step_us for step in steps] == pytest.approx([60, 10, 20, 120])
    assert [step.ratio for step in steps] == pytest.approx([1, 7 / 6, 1.5, 3.5])


def test_the_other_driver_stands_beside() -> None:
    measured = fitted(blocks(VARIANTS, 6, 5, exact))
    found = ladder(measured, VARIANTS, "psycopg2")
    assert found
    assert [step.layer for step in found.steps][1] == "psycopg2"
    (side,) = found.side
    assert (side.layer, side.us, side.step_us) == ("psycopg", pytest.approx(70), pytest.approx(10))


@pytest.mark.parametrize("seed", range(5))
def test_steps_of_noisy_times_add_up(seed: int) -> None:
    found = ladder(fitted(blocks(VARIANTS, 6, 5, noisy(seed))), VARIANTS, "psycopg")
    assert found
    height = 0.0
    for step in found.steps:
        height += step.step_us
        assert step.us == pytest.approx(height)
        assert step.low < step.us < step.high
        assert step.step_low_us < step.step_us < step.step_high_us
        assert step.ratio_low <= step.ratio <= step.ratio_high
        assert step.ratio == pytest.approx(step.us / found.steps[0].us)
    (side,) = found.side
    assert side.us == pytest.approx(found.steps[0].us + side.step_us)


def test_noisy_steps_are_near_the_truth() -> None:
    found = ladder(fitted(blocks(VARIANTS, 20, 5, noisy())), VARIANTS, "psycopg")
    assert found
    assert [step.step_us for step in found.steps] == pytest.approx([60, 10, 20, 120], abs=2)


def test_no_operation_takes_less_than_no_time() -> None:
    wild = fitted(blocks(VARIANTS, 2, 1, lambda of, number, round_: ALL_US[of.layer] * (1 + 9 * number)))
    steps = ladders(wild, VARIANTS, "psycopg")[0].steps
    assert all(0.0 < step.low < step.us < step.high for step in steps)


@pytest.mark.parametrize("missing", LAYERS)
def test_a_missing_rung_leaves_a_shorter_ladder(missing: str) -> None:
    present = [variant(layer) for layer in LAYERS if layer != missing]
    found = ladder(fitted(blocks(present, 6, 2, exact)), present, "psycopg")
    assert found
    assert [step.layer for step in found.steps] == [
        layer for layer in ("libpq", "psycopg", "django_cursor", "django_orm") if layer != missing
    ]
    total = sum(step.step_us for step in found.steps)
    assert total == pytest.approx(US[found.steps[-1].layer])


def test_one_rung_is_a_ladder_and_none_is_not() -> None:
    measured = fitted([block(variant("libpq"), 0, [50.0])])
    found = ladder(measured, VARIANTS, "psycopg")
    assert found
    (only,) = found.steps
    assert (only.us, only.step_us, only.ratio) == pytest.approx((50.0, 50.0, 1.0))
    assert only.low is None
    assert found.side == ()
    assert ladder(fitted([]), VARIANTS, "psycopg") is None
    assert ladder(fitted([block(variant("fake"), 0, [1.0])]), [variant("fake")], "psycopg") is None


def test_a_rung_that_shares_no_round_is_left_out() -> None:
    measured = fitted([block(variant("libpq"), 0, [50.0]), block(variant("django_orm"), 1, [200.0])])
    found = ladder(measured, VARIANTS, "psycopg")
    assert found
    assert [step.layer for step in found.steps] == ["libpq"]


def test_rungs_ignore_the_order_they_come_in() -> None:
    assert climbs(VARIANTS[::-1], "psycopg") == climbs(VARIANTS, "psycopg")


def test_psycopg2_has_a_ladder_of_its_own_where_django_runs_on_it_too() -> None:
    everything = [variant(layer) for layer in ALL_US]
    own, other = ladders(fitted(blocks(everything, 6, 5, exact)), everything, "psycopg")
    assert [step.layer for step in own.steps] == ["libpq", "psycopg", "django_cursor", "django_orm"]
    assert [side.layer for side in own.side] == ["asyncpg"]
    assert (own.driver, other.driver, other.side) == ("psycopg", "psycopg2", ())
    assert [step.layer for step in other.steps] == ["libpq", "psycopg2", *ON_PSYCOPG2]
    assert [step.step_us for step in other.steps] == pytest.approx([60, 4, 16, 110])


def test_a_ladder_of_the_ground_alone_gives_way_to_the_other() -> None:
    present = [variant(layer) for layer in ("libpq", "psycopg2", *ON_PSYCOPG2, "asyncpg")]
    found = ladder(fitted(blocks(present, 6, 5, exact)), present, "psycopg")
    assert found
    assert found.driver == "psycopg2"
    assert [side.layer for side in found.side] == ["asyncpg"]


def test_a_site_on_psycopg2_has_one_ladder() -> None:
    found = ladder(fitted(blocks(VARIANTS, 6, 5, exact)), VARIANTS, "psycopg2")
    assert found
    assert found.driver == "psycopg2"


def test_ladder_survives_json() -> None:
    found = ladder(fitted(blocks(VARIANTS, 6, 5, exact)), VARIANTS, "psycopg")
    assert found
    assert Ladder.from_json(json.loads(json.dumps(found.to_json(), allow_nan=False))) == found
