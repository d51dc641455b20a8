"""Renders table rows as HTML in Python: a template takes four times as long for thousands of cells."""

from collections.abc import Iterable
from html import escape

from django import template
from django.template import Context
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from pgperf.reports import number_format
from pgperf.reports.table import Cell, Column, Table

register = template.Library()


@register.simple_tag(takes_context=True)
def rows(context: Context, table: Table) -> SafeString:
    """The body of a reports.table.Table. Most cells are numbers, so only words have a class.

    `data-value` has the exact value of a number; not in a file for itself, which no script reads.
    """
    has_values = not context.get("standalone")
    return mark_safe("\n".join(_row(row, table.columns, context, has_values) for row in table.rows))


def _row(row: Iterable[Cell], columns: Iterable[Column], context: Context, has_values: bool) -> str:
    (first, _), *rest = zip(row, columns, strict=True)
    cells = "".join(_cell(*each, context, has_values) for each in rest)
    return f'<tr><th scope="row">{escape(first.text)}</th>{cells}</tr>'


def _cell(cell: Cell, column: Column, context: Context, has_values: bool) -> str:
    names = " ".join(filter(None, ("" if column.numeric else "words", cell.mark)))
    kind = f' class="{escape(names)}"' if names else ""
    exact = cell.value if has_values else None
    value = "" if exact is None else f' data-value="{exact}"'
    parts = _parts(cell, context) if cell.notes or cell.offer else ""
    text = cell.text if column.numeric else number_format.unbroken(cell.text)
    return f"<td{kind}{value}>{escape(text)}{parts}</td>"


def _parts(cell: Cell, context: Context) -> str:
    """The notes and the offer of a cell, which few cells have."""
    page = {name: context.get(name) for name in ("run", "may_start", "csrf_token", "standalone")}
    # The request names the admin site that links lead to.
    request = getattr(context, "request", None)
    return render_to_string("pgperf/cell_parts.html", {**page, "cell": cell}, request)
