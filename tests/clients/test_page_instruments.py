"""The parts of a page's time, by a clock of the test's own."""

from collections.abc import Iterator
from itertools import count

import pytest
from django.db import connection, models
from django.template import Context, Engine

from example.books.models import Publisher
from pgperf.clients import page_instruments
from pgperf.clients.page_instruments import PARTS, Stopwatch, parted


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Each reading is 1,000 ns after the one before it."""
    readings = count(0, 1000)
    monkeypatch.setattr(page_instruments, "monotonic_ns", lambda: next(readings))
    return readings


def test_a_part_does_not_contain_the_parts_inside_it(clock: Iterator[int]) -> None:
    watch = Stopwatch()
    inner = watch.timed("statements", lambda: None)
    watch.timed("rest", lambda: [inner(), inner()])()
    assert watch.spent == {**dict.fromkeys(PARTS, 0), "statements": 2000, "rest": 3000}


def test_an_error_ends_its_part(clock: Iterator[int]) -> None:
    watch = Stopwatch()
    with pytest.raises(ZeroDivisionError):
        watch.timed("template", lambda: 1 / 0)()
    watch.timed("rest", lambda: None)()
    assert (watch.spent["template"], watch.spent["rest"]) == (1000, 1000)


@pytest.mark.django_db
def test_every_part_of_a_page_is_found_and_nothing_stays_replaced(clock: Iterator[int]) -> None:
    Publisher.objects.bulk_create(Publisher(name=name, city="Leeds") for name in "abc")
    template = Engine().from_string("{% for each in found %}{{ each.name }}{% endfor %}")

    def page() -> None:
        assert template.render(Context({"found": Publisher.objects.all()})) == "abc"

    before = models.Model.__dict__["from_db"]
    parts, plain_us = parted(page, connection, 4)
    assert models.Model.__dict__["from_db"] is before
    assert connection.execute_wrappers == []
    assert list(parts) == list(PARTS)
    assert all(us > 0 for us in parts.values())
    assert parts["object_construction"] == 3.0  # one µs for each object
    assert plain_us == 1.0  # two readings
