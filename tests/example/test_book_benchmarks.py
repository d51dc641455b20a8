"""The example site's benchmarks of its own pages."""

from example.books.benchmarks import BENCHMARKS
from example.stack.web_steps import STEPS

PAGE = BENCHMARKS["page"]


def test_the_web_servers_of_a_page_taken_apart_stand_on_each_other() -> None:
    """Each changes one thing of the step below it, as tests of the steps say."""
    first, *rest = (route for route in PAGE["routes"] if route in STEPS)
    assert STEPS[first].server == "gunicorn"
    for below, route in zip([first, *rest], rest, strict=False):
        assert STEPS[route].builds_on == below


def test_the_last_of_them_keeps_its_connection_as_the_view_does() -> None:
    assert STEPS[PAGE["routes"][-1]].settings == {"EXAMPLE_CONN_MAX_AGE": "kept"}


def test_they_stand_on_the_view_of_the_route_by_which_they_connect() -> None:
    assert PAGE["routes"][0] == "tcp"
