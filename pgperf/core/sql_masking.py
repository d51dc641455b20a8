"""Masks the values in SQL, and classifies statements by their keywords. Standard library only.

An unclosed quote counts as a value that extends to the end of the text. So does a quote after a
backslash in plain quotes: it closes them or not, as `standard_conforming_strings` says.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import pairwise

from pgperf.core.sql_lexer import VALUE_KINDS, Token, TokenKind, tokens

_MANY = re.compile(r"\?(?:\s*,\s*\?){3,}")

_READS = {"SELECT", "WITH", "VALUES", "TABLE", "SHOW"}
_CONTROLS = {
    "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "PREPARE", "EXECUTE", "DEALLOCATE",
    "SET", "RESET", "DISCARD", "DECLARE", "FETCH", "MOVE", "CLOSE", "LISTEN", "UNLISTEN", "NOTIFY", "LOCK",
}  # fmt: skip
#: Unquoted words that make a statement write or lock rows although it begins with one of `_READS`.
#: PostgreSQL reserves INTO alone of them; INTO follows every MERGE, which is a name elsewhere.
_WRITES_INSIDE = {"INSERT", "UPDATE", "DELETE", "INTO"}
#: Quotes of PostgreSQL's messages in its languages: one that opens, then those that close it.
_QUOTES = (('"', '"'), ("'", "'"), ("»", "«"), ("«", "»"), ("„", "“”"), ("“", "”"), ("‘", "’"), ("「", "」"))
#: To the last one that closes: a value may hold quotes too.
_QUOTED = re.compile("|".join(rf"{begin}(?:.*[{ends}]|.*\Z)" for begin, ends in _QUOTES), re.DOTALL)
#: Errors whose message names tables, columns and roles, but no values.
_NAMING_STATES = ("42P01", "42703", "42501", "25006", "3F000", "57014")
#: Errors whose words a function of the site's own wrote, by SQLSTATE: RAISE and ASSERT of PL/pgSQL.
_RAISED_STATES = ("P0001", "P0004")
#: The same by the server's source file, as RAISE may choose any SQLSTATE: its procedural languages.
_LANGUAGES = ("pl_exec.c", "plpy_elog.c", "plpy_plpymodule.c", "plperl.c", "pltcl.c")
_RAISED = "a function of the database raised an error, whose words are not shown, as they may hold values"


class Effect(StrEnum):
    """The effect of a statement beside its result."""

    READS = "reads"
    WRITES = "writes or locks rows"
    CONTROLS = "controls transactions or the session"
    SEVERAL = "holds several statements"


def masked(sql: str) -> str:
    """The text with `?` for every value, without comments. Long lists of values become a count."""
    return _MANY.sub(_counted, "".join(map(_shown, _certain(sql)))).strip()


def effect(sql: str) -> Effect:
    """The effect of the statement by its keywords.

    A function that it calls may have other effects.
    """
    statements = [words for words in _words(sql) if words]
    if len(statements) != 1:
        return Effect.SEVERAL if statements else Effect.READS
    first, *rest = statements[0]
    if first in _CONTROLS:
        return Effect.CONTROLS
    writes = first not in _READS or _WRITES_INSIDE & set(rest) or _locks_shared(rest)
    return Effect.WRITES if writes else Effect.READS


def of_server(message: str, sqlstate: str, source_file: str = "") -> str:
    """A server's error message without values. `source_file`: where the server raised it, if known."""
    if sqlstate in _RAISED_STATES or source_file.rpartition("/")[2] in _LANGUAGES:
        return _RAISED
    return message if sqlstate in _NAMING_STATES else without_values(message)


def without_values(message: str) -> str:
    """An error message with `?` for all that stands between its quotes and for every number."""
    return re.sub(r"(?<![\w?])[-+]?\d[\w.:+-]*", "?", _QUOTED.sub("?", message))


def _locks_shared(words: list[str]) -> bool:
    """FOR SHARE or FOR KEY SHARE: elsewhere SHARE is a name."""
    return any(word == "SHARE" and before in ("FOR", "KEY") for before, word in pairwise(words))


def _certain(sql: str) -> Iterator[Token]:
    """The tokens up to the first one whose end the text alone does not tell."""
    for token in tokens(sql):
        yield token
        if not token.is_certain:
            return


def _shown(token: Token) -> str:
    if token.kind is TokenKind.COMMENT:
        return ""
    return "?" if token.kind in VALUE_KINDS or not token.closed else token.text


def _words(sql: str) -> list[list[str]]:
    """The unquoted words of each statement, in capitals."""
    statements: list[list[str]] = [[]]
    for token in tokens(sql):
        if token.kind is TokenKind.WORD:
            statements[-1].append(token.text.upper())
        elif token.text == ";":
            statements.append([])
    return statements


def _counted(match: re.Match[str]) -> str:
    return f"? × {match[0].count('?')}"
