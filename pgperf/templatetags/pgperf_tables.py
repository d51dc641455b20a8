"""Renders table rows as HTML in Python: a template takes four times as long for thousands of cells."""

from collections.abc import Iterable

from django import template
from django.template import Context
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from pgperf.reports.table import Cell, Column, Table

register = template.Library()


@register.simple_tag(takes_context=True)
def rows(context: Context, table: Table) -> SafeString:
    """The body of a reports.table.Table. Most cells are numbers, so only words have a class.

    `data-value` has the exact value of a number; not in a file for itself, which no script reads.
    """
    return mark_safe("\n".join(_row(row, table.columns, context) for row in table.rows))


def _row(row: Iterable[Cell], columns: Iterable[Column], context: Context) -> str:
    (first, _), *rest = zip(row, columns, strict=True)
    cells = "".join(_cell(*each, context) for each in rest)
    return f'<tr><th scope="row">{escape(first.text)}</th>{cells}</tr>'


def _cell(cell: Cell, column: Column, context: Context) -> str:
    names = " ".join(filter(None, ("" if column.numeric else "words", cell.mark)))
    kind = f' class="{escape(names)}"' if names else ""
    value = "" if cell.value is None or context.get("standalone") else f' data-value="{cell.value}"'
    return f"<td{kind}{value}>{escape(cell.text)}{_parts(cell, context)}</td>"


def _parts(cell: Cell, context: Context) -> str:
    """The notes and the offer of a cell, which few cells have."""
    if not cell.notes and cell.offer is None:
        return ""
    page = {name: context.get(name) for name in ("run", "may_start", "csrf_token", "standalone")}
    # The request names the admin site that links lead to.
    request = getattr(context, "request", None)
    return render_to_string("pgperf/cell_parts.html", {**page, "cell": cell}, request)
