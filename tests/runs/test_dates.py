"""Dates as people read them."""

from datetime import UTC, datetime

from django.utils import timezone, translation

from pgperf.runs import dates

WHEN = datetime(2026, 11, 30, 21, 11, tzinfo=UTC)


def test_a_date_has_the_format_of_the_reader_s_language_and_is_never_broken() -> None:
    with timezone.override("UTC"), translation.override("en"):
        assert dates.day(WHEN) == "Nov.\u00a030,\u00a02026"
        assert dates.moment(WHEN) == "Nov.\u00a030,\u00a02026,\u00a09:11\u00a0p.m."
        with translation.override("de"):
            assert dates.day(WHEN) == "30.\u00a0November\u00a02026"


def test_a_date_is_by_the_site_s_clocks() -> None:
    with timezone.override("Pacific/Auckland"), translation.override("en"):
        assert dates.day(WHEN) == "Dec.\u00a01,\u00a02026"
        assert dates.moment(WHEN).startswith("Dec.\u00a01,\u00a02026,\u00a010:11")
