"""Checks that a text is one SQL statement that only reads. Standard library only.

This check catches mistakes at the field where they were typed. It proves nothing: the permissions
of the readonly role decide what a statement may do, and `access.guardrails` checks that the role
cannot write. Which functions the names in the text call is looked up in the server's catalog
(`access.called_functions`); this check refuses those that every server has and pgperf refuses.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from pgperf.core import sql_calls, sql_functions
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.sql_lexer import Token, TokenKind, tokens

MAX_BYTES = 65_535

_READERS = ("select", "with", "values", "table", "show")
#: The schema of PostgreSQL's own functions. A name of another schema may be the site's own function.
_CATALOG = ("", "pg_catalog")
_STRINGS = (TokenKind.STRING, TokenKind.ESCAPE)
_TEXT, _ARGUMENT = "text", "argument"
_CONTINUED = {(_TEXT, _ARGUMENT), (_ARGUMENT, _TEXT), (_ARGUMENT, _ARGUMENT)}
_END = Token(TokenKind.SPACE, "")
_QUOTES = (
    TokenKind.STRING,
    TokenKind.ESCAPE,
    TokenKind.UNICODE,
    TokenKind.DOLLAR,
    TokenKind.NAME,
    TokenKind.UNICODE_NAME,
    TokenKind.COMMENT,
)
_PLACEHOLDER = re.compile(r"%(?:%|(s))")
#: Beside an argument, these would make one word, number or quote with it: $a%s$ could open a quote.
_JOINS = re.compile(r"""[\w$'"\\&.]|[^\x00-\x7f]""")


def check(field: str, sql: str) -> None:
    """Raises InvalidDefinition, which names the field, unless the text is one statement that reads."""
    problem = _unfit_text(sql)
    if not problem:
        found = list(tokens(sql))
        words = sql_calls.significant(found)
        problem = (
            _unfit_statement(_skeleton(field, found)) or _unfit_place(sql, words) or _refused_function(words)
        )
    if problem:
        raise InvalidDefinition(f"{field}: {problem}")


def _unfit_text(sql: str) -> str:
    if "\x00" in sql or any("\ud800" <= character <= "\udfff" for character in sql):
        return "SQL is valid Unicode without NUL characters"
    if len(sql.encode()) > MAX_BYTES:
        return f"longer than {MAX_BYTES} bytes; give long values as arguments"
    return ""


def _unfit_statement(skeleton: str) -> str:
    """Why the statement is refused; "" if it is not.

    `skeleton` has empty quotes and no comments.
    """
    body = skeleton.strip().removesuffix(";").strip()
    first = re.match(r"[(\s]*(\w*)", body)
    word = first[1].lower() if first else ""
    if not body:
        return "no statement"
    if "\\" in body:
        return "a backslash outside quotes is not SQL (psql commands do not work here)"
    if ";" in body:
        return "one statement only, without a semicolon inside"
    if word not in _READERS:
        return f"must read: begin with {', '.join(reader.upper() for reader in _READERS)}"
    return ""


def _unfit_place(sql: str, found: list[Token]) -> str:
    """Why a placeholder may not stand where it stands; "" if all may.

    With any argument, the other tokens must remain what they are.
    """
    for match in _PLACEHOLDER.finditer(sql):
        beside = sql[max(match.start() - 1, 0) : match.start()] + sql[match.end() : match.end() + 1]
        if match[1] and _JOINS.search(beside):
            return "a placeholder %s that touches a letter, a digit, a quote or one of $ & . ; write spaces around it"
    if any(pair in _CONTINUED for pair in pairwise(_texts(found))):
        return "a placeholder %s beside a text in quotes or another %s: one would continue the other"
    return ""


def _texts(found: list[Token]) -> Iterator[str]:
    """Of each token: is it a text in quotes, or a placeholder?"""
    after_percent = False
    for token, following in pairwise([*found, _END]):
        is_placeholder = token.text == "%" and following.text == "s"
        if not after_percent:
            yield _ARGUMENT if is_placeholder else _TEXT if token.kind in _STRINGS else ""
        after_percent = is_placeholder


def _refused_function(found: list[Token]) -> str:
    """Why the first refused call is refused; "" if there is none."""
    if any(_is_treat(token, following) for token, following in pairwise(found)):
        return "TREAT(... AS name) calls a function and is refused; write name(...)"
    for call in sql_calls.calls_of(found):
        why = sql_functions.refusal(call.name)
        if why and call.schema in _CATALOG and not call.dotted:
            return f"{call}() is refused: it {why}"
    return ""


def _is_treat(token: Token, following: Token) -> bool:
    return token.kind is TokenKind.WORD and sql_calls.identifier(token) == "treat" and following.text == "("


def _skeleton(field: str, found: Iterable[Token]) -> str:
    """The text without comments and with empty quotes. Quoted names become plain words."""
    pieces = []
    for token in found:
        problem = _unfit_token(token)
        if problem:
            raise InvalidDefinition(f"{field}: {problem}")
        pieces.append(_bare(token))
    return "".join(pieces)


def _unfit_token(token: Token) -> str:
    """Why the token is refused; "" if it is not."""
    if token.kind in _QUOTES and any(match[1] for match in _PLACEHOLDER.finditer(token.text)):
        # An argument is put into the text with quotes of its own: they would end these.
        return (
            "a placeholder %s in quotes or in a comment; write it without quotes, and %% for a percent sign"
        )
    if token.kind in (TokenKind.UNICODE, TokenKind.UNICODE_NAME):
        return "write U&\"...\" and U&'...' as plain text"
    if not token.closed:
        return (
            f"a quote that is not closed: {token.opening}"
            if token.opening
            else "a comment that is not closed"
        )
    if token.kind is TokenKind.STRING and "\\" in token.text:
        # With standard_conforming_strings off, the string would end elsewhere.
        return "write a backslash in quotes as E'\\\\', or give it as an argument"
    return ""


def _bare(token: Token) -> str:
    match token.kind:
        case TokenKind.STRING | TokenKind.ESCAPE | TokenKind.DOLLAR:
            return "''"
        case TokenKind.COMMENT:
            return " "
        case TokenKind.NAME:
            return " " + re.sub(r"\W", "_", token.text[1:-1]) + " "
        case _:
            return token.text
