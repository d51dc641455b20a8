"""The ladder of a page, which goes on with the web servers above the view in process."""

from dataclasses import replace
from typing import Any

import pytest

from pgperf.analysis.geometric_mean import geometric_means
from pgperf.analysis.served_page import servers_of
from pgperf.analysis.summary import summarise
from pgperf.analysis.variant_comparisons import first_kind, pairs
from pgperf.core.records import Definition, Variant

from .synthetic import blocks, definition, fitted, variant

US = {"libpq": 2_000.0, "django_view": 9_000.0, "gunicorn": 18_000.0, "nginx": 19_000.0, "kept": 12_000.0}
#: Two steps build on nginx: the ladder goes on with the first of them.
BUILDS_ON = {"gunicorn": "", "nginx": "gunicorn", "kept": "nginx", "pool": "nginx"}
ASKED = replace(definition(routes=("tcp", "socket", *BUILDS_ON)), web_routes=BUILDS_ON)
VARIANTS = [
    *(variant(layer, route) for route in ("tcp", "socket") for layer in ("libpq", "django_view")),
    *(variant("http", route) for route in BUILDS_ON),
]
VIEW, ON_SOCKET = variant("django_view", "tcp"), variant("django_view", "socket")


def us(of: Variant, number: int, round_: int) -> float:
    return US.get(of.route) or US.get(of.layer, 15_000.0)


def summary_of(asked: Definition, variants: list[Variant]) -> dict[str, Any]:
    return summarise(asked, variants, blocks(variants, 6, 2, us), "psycopg")


def test_web_servers_stand_on_the_view_of_the_first_route() -> None:
    tcp, socket, pool = summary_of(ASKED, VARIANTS)["ladders"]
    assert [(step["layer"], step["server"]) for step in tcp["steps"]] == [
        ("libpq", ""), ("django_view", ""), ("http", "gunicorn"), ("http", "nginx"), ("http", "kept"),
    ]  # fmt: skip
    assert [step["step_us"] for step in tcp["steps"]] == pytest.approx([2000, 7000, 9000, 1000, -7000])
    assert tcp["steps"][-1]["ratio"] == pytest.approx(6)
    assert [step["layer"] for step in socket["steps"]] == ["libpq", "django_view"]
    assert pool["route"] == "pool"


def test_the_first_server_is_compared_with_the_view_once() -> None:
    found = pairs(ASKED, VARIANTS, "psycopg")
    assert [pair for pair in found if VIEW in pair and pair[0].layer == "http"] == [
        (variant("http", "gunicorn"), VIEW)
    ]
    assert not any(ON_SOCKET in pair for pair in found if pair[0].layer == "http")


def test_the_order_of_the_run_is_that_of_its_routes_and_not_of_the_stored_names() -> None:
    stored = replace(ASKED, web_routes=dict(sorted(BUILDS_ON.items(), reverse=True)))
    assert servers_of(stored, VARIANTS) == servers_of(ASKED, VARIANTS)


@pytest.mark.parametrize("changed", [{"clients": 2}, {"mode": "prepared"}, {"connect": "per_operation"}])
def test_only_requests_that_differ_in_nothing_else_stand_on_a_view(changed: dict[str, Any]) -> None:
    others = [replace(each, **changed) if each.layer == "http" else each for each in VARIANTS]
    assert servers_of(ASKED, others) == {}
    assert len(summary_of(ASKED, others)["ladders"]) == 2 + len(BUILDS_ON)


def test_a_server_that_the_run_lacks_leaves_a_shorter_ladder() -> None:
    present = [each for each in VARIANTS if each.route != "nginx"]
    assert [each.route for each in servers_of(ASKED, present)[VIEW]] == ["gunicorn", "kept"]


def test_a_server_whose_requests_failed_stands_on_no_ladder() -> None:
    requests = {"requests": 1000, "errors": {"status 502": 500}, "lengths": [9]}
    measured = [
        replace(each, http=requests) if each.variant.route == "nginx" else each
        for each in blocks(VARIANTS, 6, 2, us)
    ]
    tcp = summarise(ASKED, VARIANTS, measured, "psycopg")["ladders"][0]
    assert [step["server"] for step in tcp["steps"]] == ["", "", "gunicorn", "kept"]


def test_the_comparison_that_decides_the_precision_is_the_same() -> None:
    page = [VIEW, *(variant("http", route) for route in BUILDS_ON)]
    assert (variant("http", "gunicorn"), VIEW) not in first_kind(ASKED, page)
    assert first_kind(ASKED, [*page, variant("libpq", "tcp")]) == [(VIEW, variant("libpq", "tcp"))]


def test_a_suite_has_the_same_comparisons_and_means() -> None:
    work = ASKED.workloads[0]
    suite = replace(ASKED, workloads=tuple(replace(work, name=name) for name in "abc"))
    variants = [replace(each, workload=name) for name in "abc" for each in VARIANTS]
    assert servers_of(suite, variants) == {}
    means = geometric_means(suite, fitted(blocks(variants, 6, 2, us)), variants)
    assert {mean.layer for mean in means} == {"django_view"}


def test_a_site_without_a_view_keeps_its_steps_apart() -> None:
    steps = [each for each in VARIANTS if each.layer == "http"]
    assert [len(ladder["steps"]) for ladder in summary_of(ASKED, steps)["ladders"]] == [1] * len(BUILDS_ON)


def test_a_circle_has_no_first_step() -> None:
    assert servers_of(replace(ASKED, web_routes={"gunicorn": "nginx", "nginx": "gunicorn"}), VARIANTS) == {}
