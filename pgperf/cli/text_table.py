"""Aligned tables and figures for a terminal. Pure."""

from collections.abc import Sequence

UNKNOWN = "?"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Lines with aligned columns: the first `left` ones to the left, numbers to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return "\n".join(_line(row, widths, left) for row in (head, *rows))


def number(value: float | None) -> str:
    """Three digits that count, "?" for the unknown."""
    if value is None:
        return UNKNOWN
    size = abs(value)
    return f"{value:,.{0 if size >= 1000 else 1 if size >= 10 else 2}f}"


def signed(value: float | None) -> str:
    return f"+{number(value)}" if value is not None and value > 0 else number(value)


def times(value: float | None) -> str:
    """A ratio."""
    return UNKNOWN if value is None else f"{value:.3f}" if value < 10 else f"{value:.2f}"


def interval(low: str, high: str) -> str:
    """Both ends of an interval, or "?" when it is not known."""
    return UNKNOWN if UNKNOWN in (low, high) else f"[{low}, {high}]"


def names(values: Sequence[object]) -> str:
    return ", ".join(map(str, values)) or "none"


def _line(row: Sequence[str], widths: Sequence[int], left: int) -> str:
    cells = (
        cell.ljust(width) if column < left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()
