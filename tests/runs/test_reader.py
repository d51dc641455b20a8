"""The reader's language and time zone: asked for once inside, and Django's own outside."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from django.test.utils import override_settings
from django.utils import timezone, translation

from pgperf.reports import number_format
from pgperf.runs import dates, reader

WHEN = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)


def test_the_reader_stays_the_same_inside() -> None:
    with translation.override("de"), reader.same_reader(), translation.override("fr"):
        assert reader.language() == "de"
        assert number_format.number(1.5) == "1,50"
    assert reader.language() == translation.get_language()


def test_outside_each_call_asks() -> None:
    for language, text in (("de", "1,50"), ("en", "1.50")):
        with translation.override(language):
            assert (reader.language(), number_format.number(1.5)) == (language, text)


def test_translations_that_are_off_are_a_language_too() -> None:
    with translation.override(None), reader.same_reader(), translation.override("de"):
        assert reader.language() is None


def test_days_are_those_of_the_reader() -> None:
    tokyo = ZoneInfo("Asia/Tokyo")
    with translation.override("en"):
        with timezone.override(tokyo), reader.same_reader():
            assert reader.timezone() == tokyo
            assert dates.day(WHEN) == "March\u00a02,\u00a02026"
        with timezone.override(UTC):
            assert dates.day(WHEN) == "March\u00a01,\u00a02026"


@override_settings(USE_TZ=False)
def test_a_site_without_time_zones_has_naive_dates() -> None:
    with translation.override("en"):
        assert dates.day(WHEN.replace(tzinfo=None)) == "March\u00a01,\u00a02026"
