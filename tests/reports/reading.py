"""Read tables as text."""

from pgperf.reports.table import Table


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def captions(tables: list[Table]) -> list[str]:
    return [table.caption for table in tables]
