"""Tables as Markdown to paste into a ticket."""

import re
from collections.abc import Iterable

from pgperf.reports.table import Table

#: These would end a cell, begin HTML or emphasis, or start a code span.
_ESCAPED = str.maketrans({char: f"\\{char}" for char in "\\|<>*`"} | {"\n": " ", "\r": " "})

#: An underscore within a word, as in django_orm, is none.
_EMPHASIS = re.compile(r"(?<!\w)_|_(?!\w)|(?<=_)_|_(?=_)")


def table(made: Table) -> str:
    """The caption in bold and a pipe table: words to the left, numbers to the right.

    Cells are escaped.
    """
    if not made.rows:
        return ""
    made = made.shown()
    rule = ["---:" if column.numeric and at else "---" for at, column in enumerate(made.columns)]
    rows = (cells(". ".join(cell.lines) for cell in row) for row in made.rows)
    lines = (f"| {' | '.join(line)} |" for line in (cells(made.heads), rule, *rows))
    return f"**{escaped(made.caption)}**\n\n" + "\n".join(lines)


def escaped(text: str) -> str:
    """The text as itself: no markup, no link, no end of a cell."""
    return _EMPHASIS.sub(r"\\_", text.translate(_ESCAPED)).replace("](", "]\\(")


def cells(texts: Iterable[str]) -> list[str]:
    return list(map(escaped, texts))
