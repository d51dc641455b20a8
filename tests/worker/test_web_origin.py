"""The origin at which a run's pages are asked for in process."""

import pytest

from pgperf.core.records import Definition, Route
from pgperf.worker.web_origin import asked_there
from tests.runner.builders import definition


def route(name: str, url: str = "") -> Route:
    return Route(name, "127.0.0.1", 5432, "", "", "", url=url)


@pytest.mark.parametrize(
    ("urls", "origin"),
    [
        ([], ""),
        (["https://shop.example"], "https://shop.example"),
        (["http://shop.example:8000/below"], "http://shop.example:8000"),
        (["http://shop.example:8000", "http://shop.example:8000/below"], "http://shop.example:8000"),
        (["http://shop.example:8000", "http://shop.example:8001"], ""),
        (["http://shop.example", "https://shop.example"], ""),
    ],
)
def test_a_run_has_the_origin_that_all_its_web_servers_have(urls: list[str], origin: str) -> None:
    routes = [route("tcp"), *(route(f"web{number}", url) for number, url in enumerate(urls))]
    found = asked_there(definition(), routes)
    assert found.web_origin == origin
    assert found == definition()
    assert Definition.from_json(found.to_json()).web_origin == ""
