"""Says of an operation that writes what was refused: the verb and the table, never a value."""

from pgperf.core import printable
from pgperf.core.records import WorkloadDefinition
from pgperf.core.written_table import write_of
from pgperf.runner.capture.wire_proxy import RefusedWrite

_PAGE = (
    "pgperf requests pages in read-only sessions. Measure a page that only reads; if this one writes at its first"
    " visit only, open it once, then measure it"
)
_CALLABLE = "pgperf calls it in read-only sessions. Register a callable that only reads"


def by_server(work: WorkloadDefinition, refused: RefusedWrite) -> str:
    """What the server refused, and what the user can do.

    The server's words tell what was written where a statement calls a function that writes.
    """
    write = write_of(refused.statement)
    words = "" if write.table else f" ({refused.words})"
    return _said(work, f"the server refused its {write}{words}")


def by_words(work: WorkloadDefinition, statement: str) -> str:
    """The same of a statement that writes or locks by its words, and that the server let pass."""
    return _said(work, f"it writes or locks rows by {write_of(statement)}")


def _said(work: WorkloadDefinition, what: str) -> str:
    name, remedy = ("page", _PAGE) if work.page else (work.orm or work.name, _CALLABLE)
    return printable.one_line(f"{name}: {what}: {remedy}")
