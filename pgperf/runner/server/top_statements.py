"""The statements that take a server the most time, from pg_stat_statements: those that only read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pgperf.core import sql_masking, sql_numbered, sql_read_only
from pgperf.core.answers import NUMBER, TEXT, WHOLE, ControlQuery
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.sql_lexer import tokens
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.runner.server.pg_stat_statements import PgStatStatements

#: Statements that are kept of those that are read.
MOST = 50


@dataclass(frozen=True)
class TopStatement:
    """A statement without values: placeholders `$1`, `$2`, ... Times are the server's own."""

    query: str
    calls: int
    rows: int
    total_ms: float


def read(connection: ControlConnection) -> list[TopStatement] | str:
    """Those of the connection's database that its login may see, the most time first; or why there
    are none to see.

    Raises ClientFailed if the server cannot be queried.
    """
    found = PgStatStatements.find(connection)
    if isinstance(found, str):
        return found
    text = _TOP.format(schema=found.schema, where="AND s.toplevel" if found.top_level else "")
    rows = connection.all(ControlQuery("the statements of pg_stat_statements", text, _COLUMNS))
    return list(_merged(rows))[:MOST]


def _merged(rows: Sequence[tuple[Any, ...]]) -> Iterator[TopStatement]:
    """One for each text: the same statement of two users has two rows."""
    sums: dict[str, tuple[int, int, float]] = {}
    for query, *numbers in rows:
        text = sql_numbered.without_values(query)
        if _is_read(text) and all(token.is_certain for token in tokens(query)):
            before = sums.get(text, (0, 0, 0.0))
            calls, fetched, total_ms = (old + new for old, new in zip(before, numbers, strict=True))
            sums[text] = calls, fetched, total_ms
    for text, (calls, fetched, total_ms) in sorted(sums.items(), key=lambda item: -item[1][2]):
        yield TopStatement(text, calls, fetched, total_ms)


def _is_read(query: str) -> bool:
    """SELECT and WITH that neither write nor lock rows, and that a workload may have."""
    if sql_numbered.first_word(query) not in ("select", "with"):
        return False
    try:
        sql_read_only.check("sql", sql_numbered.placeholders(query)[0])
    except InvalidDefinition:
        return False
    return sql_masking.effect(query) is sql_masking.Effect.READS


_COLUMNS = (TEXT, WHOLE, WHOLE, NUMBER)
# The texts of other logins' statements are hidden from a login without pg_read_all_stats.
_TOP = """
SELECT /* pgperf diagnosis */ s.query, s.calls, s.rows, s.total_exec_time
FROM {schema}.pg_stat_statements s
WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND length(s.query) <= 4000 AND position('/* pgperf' in s.query) = 0 {where}
ORDER BY s.total_exec_time DESC LIMIT 300
"""
