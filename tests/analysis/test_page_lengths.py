"""Bodies over HTTP beside the length of the page."""

import pytest

from pgperf.analysis.http_requests import HttpRequests
from pgperf.analysis.page_lengths import Lengths, OtherLength, others
from pgperf.core.records import Variant


def variant(route: str, workload: str = "list") -> Variant:
    return Variant(
        workload=workload, layer="http", mode="simple", route=route, clients=1, connect="persistent",
        placement="apart",
    )  # fmt: skip


def requests(least: int | None, most: int | None = None) -> HttpRequests:
    return HttpRequests(100, least_bytes=least, most_bytes=most or least)


@pytest.mark.parametrize(
    ("answer", "lengths"),
    [
        ("200, 6,000 to 6,144 bytes", Lengths(6000, 6144)),
        ("200, 1,300 bytes", Lengths(1300, 1300)),
        ("200, 0 bytes", Lengths(0, 0)),
        ("", None),
    ],
)
def test_the_view_s_answer_is_read(answer: str, lengths: Lengths | None) -> None:
    assert Lengths.of_view(answer) == lengths


@pytest.mark.parametrize(
    ("own", "alike"),
    [
        (Lengths(500, 1000), True),
        (Lengths(1000, 2400), True),
        (Lengths(499, 1000), False),
        (Lengths(1000, 2401), False),
        (Lengths(0, 0), False),
    ],
)
def test_half_to_twice_is_the_page(own: Lengths, alike: bool) -> None:
    assert own.is_like(Lengths(1000, 1200)) == alike


def test_bodies_are_compared_with_the_view_s() -> None:
    web = variant("web")
    view = Lengths(1000, 1200)
    found = others({web: requests(310)}, {"list": view})
    assert found == [OtherLength(web, Lengths(310, 310), view, None)]
    assert others({web: requests(990, 1210)}, {"list": view}) == []
    assert others({web: requests(None)}, {"list": view}) == []


def test_each_of_several_pages_is_compared_with_its_own_view() -> None:
    views = {"list": Lengths(1000, 1200), "show": Lengths(90_000, 90_000)}
    login = {variant("web", name): requests(1100) for name in (*views, "other")}
    assert [each.variant.workload for each in others(login, views)] == ["show"]


def test_without_a_view_they_are_compared_with_those_of_the_first_step_of_the_workload() -> None:
    first, second, other = variant("first"), variant("second"), variant("first", "show")
    found = others({first: requests(1000), second: requests(310), other: requests(9000)}, {})
    assert found == [OtherLength(second, Lengths(310, 310), Lengths(1000, 1000), first)]
    assert others({first: requests(310)}, {}) == []
