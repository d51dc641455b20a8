"""The verb of a statement that writes or locks, and its table, by the statement's words. Standard
library only.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from pgperf.core.sql_lexer import Token, TokenKind, tokens

#: Verbs that their table follows, also inside a statement that begins with one of the second line.
_WRITES = ("INSERT", "UPDATE", "DELETE", "MERGE")
_HOLD_WRITES = (*_WRITES, "SELECT", "WITH", "EXPLAIN", "")
#: Verbs that their table follows, at the beginning only.
_ALONE = ("TRUNCATE", "COPY", "LOCK", "REFRESH")
_DEFINES = ("CREATE", "ALTER", "DROP")
#: Before UPDATE or SHARE, they make it a lock of rows.
_LOCKS = ("FOR", "KEY")
#: Words between a verb and its table.
_BETWEEN = ("INTO", "FROM", "TABLE", "MATERIALIZED", "VIEW", "CONCURRENTLY", "ONLY", "IF", "NOT", "EXISTS")
_BLANK = (TokenKind.SPACE, TokenKind.COMMENT)
_NAMES = (TokenKind.WORD, TokenKind.NAME)


class Write(NamedTuple):
    """`table` is as the statement writes it; "" if its words do not say which."""

    verb: str
    table: str = ""

    def __str__(self) -> str:
        return f"{self.verb} of {self.table}" if self.table else self.verb


def write_of(sql: str) -> Write:
    """What the statement writes or locks. A function that it calls may write something else."""
    found = [token for token in tokens(sql) if token.kind not in _BLANK]
    words = [_word(token) for token in found]
    first, second = (*words, "", "")[:2]
    if first in _ALONE:
        return Write(first, _table(found[1:]))
    if first in _DEFINES:
        table = _table(found[1:]) if second == "TABLE" else ""
        return Write(f"{first} {second}".strip(), table)
    return _inside(found, words) if first in _HOLD_WRITES else Write(first)


def _inside(found: Sequence[Token], words: Sequence[str]) -> Write:
    """The first write in a statement that may begin with a query."""
    for at, (before, word) in enumerate(pairwise(["", *words])):
        if before in _LOCKS and word in ("UPDATE", "SHARE"):
            return Write(
                f"SELECT FOR {word}", _table(found[words.index("FROM") :]) if "FROM" in words else ""
            )
        if word in _WRITES:
            return Write(word, _table(found[at + 1 :]))
    return Write(next(filter(None, words), ""))


def _word(token: Token) -> str:
    """A word outside quotes, in capitals; "" for any other token."""
    return token.text.upper() if token.kind is TokenKind.WORD else ""


def _table(after: Sequence[Token]) -> str:
    """The name, with its schema, that these tokens begin with."""
    skipped = sum(1 for _ in takewhile(lambda token: _word(token) in _BETWEEN, after))
    return "".join(_parts(after[skipped:]))


def _parts(after: Iterable[Token]) -> Iterable[str]:
    """A name, and each further one behind a dot."""
    wants_name = True
    for token in after:
        if not token.closed or (token.kind not in _NAMES if wants_name else token.text != "."):
            return
        yield token.text
        wants_name = not wants_name
