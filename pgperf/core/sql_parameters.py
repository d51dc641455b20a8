"""The forms of one statement: `%s` with arguments, arguments written in, `$1` (pure, standard library only).

A statement is written as for a DB-API driver and always read as one, with arguments or without: `%s` stands for an
argument, `%%` for a percent sign, and any other `%` is refused. An argument is a str, int, float, bool or None.
"""

import re
from collections.abc import Sequence
from typing import Any

from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.protocol import Statement

_PERCENT = re.compile(r"%(.?)", re.DOTALL)
_SPECIAL_FLOATS = {"inf": "'Infinity'::float8", "-inf": "'-Infinity'::float8", "nan": "'NaN'::float8"}


def statement(sql: str, args: Sequence[Any]) -> Statement:
    """Every form of one statement. Raises InvalidDefinition as `literal` does."""
    return Statement(
        sql=sql,
        args=list(args),
        literal=literal(sql, args),
        numbered=numbered(sql),
        args_text=as_text(args),
        arg_oids=[0] * len(args),
    )


def statements(sql: str, args: Sequence[Any]) -> list[Statement]:
    """The one statement of that text, none for an empty text. Raises InvalidDefinition as `literal` does."""
    return [statement(sql, args)] if sql else []


def literal(sql: str, args: Sequence[Any]) -> str:
    """`sql` with its arguments written in, byte for byte as psycopg's client-side binding writes them.

    Raises InvalidDefinition when placeholders and arguments do not match, or an argument has no SQL form.
    """
    pieces = _split(sql)
    if len(pieces) - 1 != len(args):
        raise InvalidDefinition(
            f"sql: {len(pieces) - 1} placeholders for {len(args)} arguments;"
            " write one %s for each, and %% for a percent sign"
        )
    return pieces[0] + "".join(_quote(arg) + piece for arg, piece in zip(args, pieces[1:], strict=True))


def numbered(sql: str) -> str:
    """`sql` with `$1`, `$2`, ... for its placeholders, as the extended protocol wants them."""
    pieces = _split(sql)
    return pieces[0] + "".join(f"${number}{piece}" for number, piece in enumerate(pieces[1:], 1))


def as_text(args: Sequence[Any]) -> list[str | None]:
    """The arguments in PostgreSQL's text format, None for NULL."""
    return [_text(arg) for arg in args]


def _split(sql: str) -> list[str]:
    """What stands before, between and after the placeholders, percent signs unescaped."""
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
                f"sql: {match[0]!r} is no placeholder; write %s, or %% for a percent sign"
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
    # A space keeps a minus sign apart from one before it: two of them would begin a comment.
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
            f"args: {type(arg).__name__} is no argument; use text, numbers, booleans or null"
        )
    if "\x00" in arg or not _encodable(arg):
        raise InvalidDefinition(
            "args: text must be valid Unicode without NUL characters; PostgreSQL stores no other"
        )
    return arg


def _encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
