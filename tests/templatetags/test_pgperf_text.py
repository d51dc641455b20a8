"""Sentences with numbers on a page."""

import pytest
from django.template import Context, Template
from django.utils.safestring import SafeString, mark_safe

from pgperf.reports.table import Note


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>5 µs</b>", "&lt;b&gt;5\u00a0µs&lt;/b&gt;"),
        (mark_safe("<b>5 µs</b>"), "<b>5\u00a0µs</b>"),
        (Note("took 5 s", run=7), "Run 7: took 5\u00a0s"),
    ],
)
def test_numbers_stay_with_their_units_and_text_is_escaped(text: str | SafeString | Note, shown: str) -> None:
    template = Template("{% load pgperf_text %}{{ text|unbroken }}")
    assert template.render(Context({"text": text})) == shown
