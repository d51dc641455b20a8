"""Finds the functions that a SQL text may call. Standard library only.

PostgreSQL calls a function by three notations: `name(...)`; `value.name`, for a function of one
argument; and `TREAT(value AS name)`, which `sql_read_only` refuses. A name before a parenthesis
need not be a function, and a name after a dot is mostly a column. The server's catalog decides
(`access.called_functions`).
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from pgperf.core.sql_lexer import Token, TokenKind, tokens

_ASCII_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


class Call(NamedTuple):
    """A name that may call a function, as the catalog has it. `schema` is "" without one."""

    schema: str
    name: str
    dotted: bool = False  # value.name: of one argument, from any schema of the search path

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


def calls(sql: str) -> list[Call]:
    """Every possible call in the text, once each, in order."""
    return calls_of(significant(tokens(sql)))


def calls_of(found: list[Token]) -> list[Call]:
    """Every possible call in these tokens, which have no spaces and comments."""
    return list(dict.fromkeys(_calls(found)))


def significant(found: Iterable[Token]) -> list[Token]:
    """The tokens without spaces and comments."""
    return [token for token in found if token.kind not in (TokenKind.SPACE, TokenKind.COMMENT)]


def identifier(token: Token) -> str:
    """The name that the token stands for; "" if it is no name.

    The server lowers ASCII letters only.
    """
    if token.kind is TokenKind.NAME:
        return token.text[1:-1].replace('""', '"')
    return token.text.translate(_ASCII_LOWER) if token.kind is TokenKind.WORD else ""


def _calls(found: list[Token]) -> Iterator[Call]:
    before, schema = "", ""
    for token, following in pairwise([*found, Token(TokenKind.OTHER, "")]):
        name, dotted = identifier(token), before == "."
        if name and following.text == "(":
            yield Call(schema if dotted else "", name)
        elif name and dotted:
            yield Call("", name, dotted=True)
        if token.text != ".":
            schema = name
        before = token.text
