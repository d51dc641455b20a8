"""SQL as it may be shown: values masked; and what a statement does, judged by its words (pure, standard library only).

A lexer, not a parser: it knows what is a string, a number, a comment or a quoted name, with PostgreSQL's rules and
`standard_conforming_strings` on. What does not end is taken for a value up to the end of the text.
"""

import re
from collections.abc import Iterator
from enum import StrEnum

_TOKEN = re.compile(
    r"""
      (?P<comment> --[^\n]* )
    | (?P<block>   /\* )
    | (?P<value>   [eE]'(?:[^'\\]|\\.|'')*(?:'|\Z)
                 | (?:[bBxXnN]|[uU]&)?'(?:[^']|'')*(?:'|\Z)
                 | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|\Z)
                 | \d[\w]*(?:\.[\d_]*)?(?:[eE][+-]?[\d_]+)? | \.\d[\d_]*(?:[eE][+-]?\d+)? )
    | (?P<name>    (?:[uU]&)?"(?:[^"]|"")*(?:"|\Z) )
    | (?P<param>   \$\d+ )
    | (?P<word>    [^\W\d][\w$]* )
    | (?P<space>   \s+ )
    | (?P<other>   . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
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
    pieces = ("?" if kind == "value" else "" if kind == "comment" else text for kind, text in _tokens(sql))
    return _MANY.sub(_counted, "".join(pieces)).strip()


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


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    """Kind and text of each token; comments nest, as PostgreSQL's do."""
    at = 0
    while match := _TOKEN.match(sql, at):
        kind, at = str(match.lastgroup), match.end()
        if kind == "tag":  # the group inside of a dollar-quoted string
            kind = "value"
        if kind == "block":
            kind, at = "comment", _comment_end(sql, at)
        yield kind, sql[match.start() : at]


def _comment_end(sql: str, at: int) -> int:
    depth = 1
    for edge in _COMMENT_EDGE.finditer(sql, at):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return edge.end()
    return len(sql)


def _words(sql: str) -> list[list[str]]:
    """The unquoted words in capitals, statement by statement."""
    statements: list[list[str]] = [[]]
    for kind, text in _tokens(sql):
        if kind == "word":
            statements[-1].append(text.upper())
        elif text == ";":
            statements.append([])
    return statements


def _counted(match: re.Match[str]) -> str:
    return f"? × {match[0].count('?')}"
