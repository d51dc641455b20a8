"""SQL as it may be shown: values masked; and what a statement does, judged by its words (pure, standard library only).

What does not end is taken for a value up to the end of the text.
"""

import re
from enum import StrEnum

from pgperf.core.sql_lexer import Kind, Token, tokens

_VALUES = {Kind.STRING, Kind.ESCAPE, Kind.UNICODE, Kind.DOLLAR, Kind.NUMBER}
_MANY = re.compile(r"\?(?:\s*,\s*\?){3,}")

_READS = {"SELECT", "WITH", "VALUES", "TABLE", "SHOW"}
_CONTROLS = {
    "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "PREPARE", "EXECUTE", "DEALLOCATE",
    "SET", "RESET", "DISCARD", "DECLARE", "FETCH", "MOVE", "CLOSE", "LISTEN", "UNLISTEN", "NOTIFY", "LOCK",
}  # fmt: skip
#: In an unquoted word of a statement that begins like a reading one: it writes after all, or locks rows.
_WRITES_INSIDE = {"INSERT", "UPDATE", "DELETE", "MERGE", "INTO", "SHARE"}


class Effect(StrEnum):
    """What a statement does beside answering."""

    READS = "reads"
    WRITES = "writes or locks rows"
    CONTROLS = "controls transactions or the session"
    SEVERAL = "holds several statements"


def masked(sql: str) -> str:
    """The text with `?` for every value, comments left out, long lists of values counted."""
    return _MANY.sub(_counted, "".join(_shown(token) for token in tokens(sql))).strip()


def effect(sql: str) -> Effect:
    """What the statement does. A function that it calls may do more; a read-only session knows."""
    statements = [words for words in _words(sql) if words]
    if len(statements) != 1:
        return Effect.SEVERAL if statements else Effect.READS
    first, *rest = statements[0]
    if first in _CONTROLS:
        return Effect.CONTROLS
    return Effect.WRITES if first not in _READS or _WRITES_INSIDE & set(rest) else Effect.READS


def without_values(message: str) -> str:
    """An error's words with `?` for whatever stands in quotes of either kind, and for every number."""
    quoted = re.sub(r"\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z)", "?", message, flags=re.DOTALL)
    return re.sub(r"(?<![\w?])[-+]?\d[\w.:+-]*", "?", quoted)


def _shown(token: Token) -> str:
    if token.kind is Kind.COMMENT:
        return ""
    return "?" if token.kind in _VALUES or not token.closed else token.text


def _words(sql: str) -> list[list[str]]:
    """The unquoted words in capitals, statement by statement."""
    statements: list[list[str]] = [[]]
    for token in tokens(sql):
        if token.kind is Kind.WORD:
            statements[-1].append(token.text.upper())
        elif token.text == ";":
            statements.append([])
    return statements


def _counted(match: re.Match[str]) -> str:
    return f"? × {match[0].count('?')}"
