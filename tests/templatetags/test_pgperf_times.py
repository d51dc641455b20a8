"""When something happened, in the words of a page."""

from datetime import UTC, datetime, timedelta

import pytest
from django.template import Context, Template
from django.utils import timezone, translation


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (timedelta(0), "now"),
        (timedelta(minutes=5, seconds=30), "5\xa0minutes ago"),
        (timedelta(days=2, minutes=30), "2\xa0days ago"),
    ],
)
def test_a_moment_before_now(before: timedelta, words: str) -> None:
    moment = timezone.now() - before
    shown = Template("{% load pgperf_times %}{{ moment|ago }}").render(Context({"moment": moment}))
    assert shown == words


def test_a_date_is_never_broken() -> None:
    context = Context({"moment": datetime(2026, 11, 30, 9, 11, tzinfo=UTC)})
    with timezone.override("UTC"), translation.override("en"):
        shown = Template("{% load pgperf_times %}{{ moment|moment }}").render(context)
    assert shown == "Nov.\xa030,\xa02026,\xa09:11\xa0a.m."
