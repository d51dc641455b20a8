"""A section of the run page is one module, one template and one entry: this test adds one."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from pgperf.models import Run
from pgperf.reports import run_page
from pgperf.reports.run_page import Entry

MODULE = """
from pgperf.reports.table import Table, count, text_column, words, Column

def part(rows):
    cells = [(words("variants"), count(len(rows.variants)))]
    return {"table": Table("Counted", (text_column("What"), Column("count")), cells)}
"""
TEMPLATE = '{% include "pgperf/table.html" with table=part.table %}'


@pytest.fixture
def added(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module, a template and an entry."""
    (tmp_path / "counted_section.py").write_text(MODULE)
    template = tmp_path / "pgperf" / "sections" / "counted.html"
    template.parent.mkdir(parents=True)
    template.write_text(TEMPLATE)

    monkeypatch.syspath_prepend(str(tmp_path))
    first, *others = settings.TEMPLATES
    settings.TEMPLATES = [{**first, "DIRS": [*first.get("DIRS", []), str(tmp_path)]}, *others]
    entry = Entry("counted", "Counted things", "statements", importlib.import_module("counted_section").part)
    monkeypatch.setattr(run_page, "SECTIONS", (*run_page.SECTIONS, entry))
    monkeypatch.delitem(sys.modules, "counted_section")


@pytest.mark.usefixtures("added")
def test_a_new_section_is_on_the_page_with_its_topic(admin_page: Client, run: Run) -> None:
    text = admin_page.get(reverse("admin:pgperf_run_change", args=[run.pk])).content.decode()
    assert '<a href="#topic-statements">Statements</a>' in text
    topic = text.split('id="topic-statements"')[1].split('class="pgperf-topic"')[0]
    assert 'id="run-counted"' in topic
    assert f'<td data-value="{run.variants.count()}">' in text


def test_each_entry_has_its_module_and_its_template() -> None:
    for entry in run_page.SECTIONS:
        assert entry.make is importlib.import_module(f"pgperf.reports.sections.{entry.name}").part
        assert (
            Path(run_page.__file__).parents[1] / "templates/pgperf/sections" / f"{entry.name}.html"
        ).exists()
