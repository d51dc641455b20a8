"""The forms of one statement: with `%s`, with its arguments as literals, with `$1`. Standard
library only.

The text of a statement has the format of a DB-API driver, with arguments or without: `%s` is a
placeholder, `%%` is a percent sign, and any other `%` is refused. An argument is a str, int, float,
bool or None.
"""

import re
from collections.abc import Sequence
from typing import Any

from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.protocol import Statement

_PERCENT = re.compile(r"%(.?)", re.DOTALL)
_SPECIAL_FLOATS = {"inf": "'Infinity'::float8", "-inf": "'-Infinity'::float8", "nan": "'NaN'::float8"}


def statement(sql: str, args: Sequence[Any]) -> Statement:
    """Every form of one statement. Raises InvalidDefinition like `literal`."""
    return Statement(
        sql=sql,
        args=list(args),
        literal=literal(sql, args),
        numbered=numbered(sql),
        args_text=as_text(args),
        arg_oids=[0] * len(args),
    )


def statements(sql: str, args: Sequence[Any]) -> list[Statement]:
    """A list of one statement; empty for an empty text. Raises InvalidDefinition like `literal`."""
    return [statement(sql, args)] if sql else []


def row_statement(sql: str, row: Sequence[Any]) -> Statement:
    """A statement whose arguments are the values of one row to insert; COPY has no placeholders."""
    if "%s" in sql:
        return statement(sql, row)
    return statement(sql, ())._replace(args=list(row), args_text=as_text(row))


def literal(sql: str, args: Sequence[Any]) -> str:
    """`sql` with its arguments as literals, byte for byte the output of psycopg's client-side
    binding.

    Raises InvalidDefinition if placeholders and arguments do not match, or an argument has no SQL
    form.
    """
    pieces = _split(sql)
    if len(pieces) - 1 != len(args):
        raise InvalidDefinition(
            f"sql: {len(pieces) - 1} placeholders for {len(args)} arguments;"
            " write one %s for each, and %% for a percent sign"
        )
    return pieces[0] + "".join(_quote(arg) + piece for arg, piece in zip(args, pieces[1:], strict=True))


def numbered(sql: str) -> str:
    """`sql` with the placeholders `$1`, `$2`, ... of the extended protocol."""
    pieces = _split(sql)
    return pieces[0] + "".join(f"${number}{piece}" for number, piece in enumerate(pieces[1:], 1))


def as_text(args: Sequence[Any]) -> list[str | None]:
    """The arguments in PostgreSQL's text format, None for NULL."""
    return [_text(arg) for arg in args]


def _split(sql: str) -> list[str]:
    """The parts before, between and after the placeholders, with percent signs unescaped."""
    pieces, last = [""], 0
    for match in _PERCENT.finditer(sql):
        pieces[-1] += sql[last : match.start()]
        last = match.end()
        if match[1] == "s":
            pieces.append("")
        elif match[1] == "%":
            pieces[-1] += "%"
        else:
            raise InvalidDefinition(
                f"sql: {match[0]!r} is not a placeholder; write %s, or %% for a percent sign"
            )
    pieces[-1] += sql[last:]
    return pieces


def _quote(arg: Any) -> str:
    text = _text(arg)
    if text is None:
        return "NULL"
    if isinstance(arg, str):
        return _quote_text(text)
    if isinstance(arg, bool):
        return "true" if arg else "false"
    # The space separates two minus signs, which would begin a comment.
    return _SPECIAL_FLOATS.get(text) or (f" {text}" if text.startswith("-") else text)


def _quote_text(text: str) -> str:
    quoted = text.replace("'", "''")
    if "\\" not in text:
        return f"'{quoted}'"
    escaped = quoted.replace("\\", "\\\\")
    return f" E'{escaped}'"


def _text(arg: Any) -> str | None:
    if arg is None:
        return None
    if isinstance(arg, bool):
        return "t" if arg else "f"
    if isinstance(arg, int | float):
        return str(arg)
    if not isinstance(arg, str):
        raise InvalidDefinition(
            f"args: an argument cannot be of type {type(arg).__name__}; use text, numbers, booleans or null"
        )
    if "\x00" in arg or not _encodable(arg):
        raise InvalidDefinition(
            "args: text must be valid Unicode without NUL characters; PostgreSQL stores no other"
        )
    return arg


def _encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
