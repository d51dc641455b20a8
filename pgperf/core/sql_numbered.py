"""Statements with the placeholders `$1`, `$2`, ..., as pg_stat_statements gives them. Standard library
only.

pg_stat_statements replaces constants by placeholders. It leaves some: those of ORDER BY 1, and all of
a text that it stored again after it had dropped the statement. They are masked here.
"""

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import count

from pgperf.core.sql_lexer import VALUE_KINDS, Token, TokenKind, tokens

#: Two characters that would be one word: DATE'2026-01-01' must not become DATE$1.
_WORD = re.compile(r"[\w$]{2}")
_FIRST = re.compile(r"[(\s]*(\w*)")


def without_values(sql: str) -> str:
    """The statement with a further placeholder for each value that it still has, and without comments.

    An unclosed quote counts as a value that extends to the end of the text.
    """
    found = list(tokens(sql))
    numbers = count(max((_number(each) for each in found if each.kind is TokenKind.PARAM), default=0) + 1)
    text = ""
    for piece in (_masked(each, numbers) for each in found):
        text += f" {piece}" if _WORD.fullmatch(text[-1:] + piece[:1]) else piece
    return text.strip()


def first_word(sql: str) -> str:
    """The keyword that a statement without comments begins with, in lower case."""
    match = _FIRST.match(sql)
    return match[1].lower() if match else ""


def placeholders(sql: str) -> tuple[str, list[int]]:
    """The text with `%s` for each placeholder and `%%` for a percent sign, and the placeholders'
    numbers in the order of the text.
    """
    found = list(tokens(sql))
    text = "".join("%s" if each.kind is TokenKind.PARAM else each.text.replace("%", "%%") for each in found)
    return text, [_number(each) for each in found if each.kind is TokenKind.PARAM]


def typed_value(text: str) -> str | int | float | bool | None:
    """A JSON scalar as that value, and any other text as text: 42, "42", true, null, Cobalt Press. So
    is a decimal that no float equals, which PostgreSQL reads exactly.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_exact)
        str(value).encode()
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, list | dict) or "\0" in str(value) else value


def _exact(text: str) -> float:
    """Raises ValueError for another number than a float's shortest text."""
    value = float(text)
    if Decimal(repr(value)) != Decimal(text):
        raise ValueError
    return value


def _number(token: Token) -> int:
    """Of a forged text its first nine digits: no server has so many parameters."""
    return int(token.text[1:10])


def _masked(token: Token, numbers: Iterator[int]) -> str:
    if token.kind is TokenKind.COMMENT:
        return " "
    if token.kind in VALUE_KINDS or not token.closed:
        return f"${next(numbers)}"
    return token.text


def _no_constant(name: str) -> None:
    """JSON has no NaN and no infinity."""
    raise ValueError(name)
