"""Steps of a web site: their order, the step that each builds on, and the effects."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgperf.analysis.staircase import Effect, Step, staircases
from pgperf.core.records import Variant

ROUTES = ("apache", "nginx", "pgbouncer", "tls", "advised")
BUILDS_ON = {
    "apache": "",
    "nginx": "apache",
    "pgbouncer": "nginx",
    "tls": "pgbouncer",
    "advised": "pgbouncer",
}


def variant(route: str, **fields: object) -> Variant:
    known = {
        "workload": "books", "layer": "http", "mode": "simple", "clients": 20, "connect": "persistent",
        "placement": "apart",
    }  # fmt: skip
    return Variant(**{**known, **fields, "route": route})  # type: ignore[arg-type]


def effect(ratio: float) -> Effect:
    return Effect.of_times(ratio, ratio * 0.9, ratio * 1.1, "differs")


def test_each_step_has_its_effect_over_the_one_it_builds_on_and_over_the_first() -> None:
    variants = [variant(route) for route in ROUTES]
    apache, nginx, pgbouncer, _tls, advised = variants
    own, total = effect(0.8), effect(0.3)
    (steps,) = staircases(variants, BUILDS_ON, {(advised, pgbouncer): own, (advised, apache): total})
    assert [step.variant.route for step in steps] == list(ROUTES)
    assert steps[0] == Step(apache)
    assert steps[1] == Step(nginx, apache)
    assert steps[4] == Step(advised, pgbouncer, own, total)


def test_requests_per_second_are_the_reciprocal_of_the_time() -> None:
    found = Effect.of_times(0.8, 0.5, 1.0, "inconclusive")
    assert found == Effect(1.25, 1.0, 2.0, "inconclusive")


def test_without_an_interval_there_is_none() -> None:
    assert Effect.of_times(2.0, None, None, "inconclusive") == Effect(0.5, None, None, "inconclusive")


@given(st.floats(0.01, 100), st.floats(1, 2), st.floats(1, 2))
def test_the_interval_holds_the_ratio(ratio: float, below: float, above: float) -> None:
    found = Effect.of_times(ratio, ratio / below, ratio * above, "differs")
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.ratio * (1 + 1e-9)
    assert found.ratio <= found.high * (1 + 1e-9)


def test_distances_and_numbers_of_clients_are_staircases_of_their_own() -> None:
    near = [variant("apache"), variant("nginx")]
    far = [variant("apache+45ms"), variant("nginx+45ms")]
    one = [replace(each, clients=1) for each in near]
    builds_on = {**BUILDS_ON, "apache+45ms": "", "nginx+45ms": "apache+45ms"}
    found = staircases([*near, *far, *one], builds_on, {})
    assert [[step.variant for step in steps] for steps in found] == [near, far, one]


def test_controls_and_other_routes_are_left_out() -> None:
    steps = [variant("apache"), variant("nginx")]
    others = [variant("socket"), variant("nginx", control=1)]
    (found,) = staircases([*steps, *others], BUILDS_ON, {})
    assert [step.variant for step in found] == steps


@pytest.mark.parametrize("routes", [("apache",), ("apache", "tls"), ("socket", "tcp"), ()])
def test_without_a_step_upon_another_there_is_no_staircase(routes: tuple[str, ...]) -> None:
    assert staircases([variant(route) for route in routes], BUILDS_ON, {}) == []


def test_a_step_whose_base_was_not_measured_is_a_first() -> None:
    (steps,) = staircases([variant("nginx"), variant("pgbouncer")], BUILDS_ON, {})
    assert [step.builds_on for step in steps] == [None, variant("nginx")]


@given(st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["", "a", "b", "c", "d", "e"])))
def test_every_step_appears_once_whatever_builds_on_what(builds_on: dict[str, str]) -> None:
    variants = [variant(route) for route in builds_on]
    found = [step.variant for steps in staircases(variants, builds_on, {}) for step in steps]
    assert len(found) == len(set(found))
    has_step = any(builds_on[route] in builds_on.keys() - {route} for route in builds_on)
    assert sorted(found, key=str) == (sorted(variants, key=str) if has_step else [])
