"""Tables as CSV and XLSX: a column for each key, with the exact values. Text is made harmless.

Numbers stay numbers, negative ones too. Text that a spreadsheet would take for a formula is quoted.
"""

from collections.abc import Callable, Iterable, Mapping

import tablib
from import_export.formats.base_formats import XLSX

from pgperf.core.formula_injection import harmless, printable
from pgperf.models import Run
from pgperf.reports.run_rows import RunRows, read
from pgperf.reports.table import Table, Value
from pgperf.runs import state

#: The columns that lead each row, which tell the runs apart.
Lead = Callable[[Run], Mapping[str, Value]]


def csv(runs: Iterable[Run], make: Callable[[RunRows], Table], lead: Lead) -> str:
    """A header line, then the rows of each run's table."""
    return str(_dataset(runs, make, lead).export("csv"))


def xlsx(runs: Iterable[Run], make: Callable[[RunRows], Table], lead: Lead) -> bytes:
    """A workbook with one sheet: the same rows."""
    return bytes(XLSX().export_data(_dataset(runs, make, lead)))


def short_lead(run: Run) -> dict[str, Value]:
    return {"run_id": run.pk, "benchmark": run.benchmark_name, "database": run.database_name}


def long_lead(run: Run) -> dict[str, Value]:
    started, finished = (
        moment.isoformat() if moment else None for moment in (run.started_at, run.finished_at)
    )
    return {
        **short_lead(run),
        "status": str(state.effective_status(run)),
        "quick": run.quick,
        "started": started,
        "finished": finished,
        "definition_hash": run.definition_hash,
    }


def cell_text(text: str) -> str:
    """The text as a cell may hold it: no formula, and no control character, which no sheet can
    hold.
    """
    return harmless(printable(text))


def cell_value(value: Value) -> Value:
    """The same of a text; any other value as it is."""
    return cell_text(value) if isinstance(value, str) else value


def _dataset(runs: Iterable[Run], make: Callable[[RunRows], Table], lead: Lead) -> tablib.Dataset:
    none = Run(status=Run.Status.DONE)  # of which nothing has to be asked
    data = tablib.Dataset(headers=[*lead(none), *_keys(make(RunRows(none, [], [])))])
    for run in runs:
        table, leading = make(read(run)), lead(run).values()
        for row in table.rows:
            values = (value for cell in row for value in cell.values)
            data.append([cell_value(value) for value in (*leading, *values)])
    return data


def _keys(table: Table) -> list[str]:
    return [key for column in table.columns for key in column.keys]
