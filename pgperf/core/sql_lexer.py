"""SQL cut into its tokens by PostgreSQL's rules, `standard_conforming_strings` on (pure, standard library only).

A lexer, not a parser. It sees letters, digits and spaces as the server does: beyond ASCII every character belongs to a
word, a space that is none there included, so no text has its quotes elsewhere for us than for the server.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What a token is."""

    COMMENT = "comment"
    STRING = "string"  # in plain quotes, also those of bits and of a national text
    ESCAPE = "escape"  # E'...': a backslash escapes, also in its continuations on later lines
    UNICODE = "unicode"  # U&'...'
    DOLLAR = "dollar"
    NUMBER = "number"
    NAME = "name"  # in double quotes
    UNICODE_NAME = "unicode_name"  # U&"..."
    PARAM = "param"  # $1
    WORD = "word"
    SPACE = "space"
    OTHER = "other"


class Token(NamedTuple):
    """A piece of the text. A quote or comment that is never closed reaches to the end of the text."""

    kind: Kind
    text: str
    closed: bool = True

    @property
    def opening(self) -> str:
        """The quote that opens it, with what stands before: `'`, `E'`, `$tag$`."""
        match = _OPENING.match(self.text)
        return match[0] if match else ""


#: What may stand between two strings that are one: a line's end, and spaces and comments around it.
_BETWEEN = r"(?:[\x20\t\f\v]++|--[^\n\r]*+)*+[\n\r](?:[\x20\t\n\r\f\v]++|--[^\n\r]*+[\n\r])*+"
_ESCAPED = r"'(?:[^'\\]|''|\\.)*+'"
_TAG = r"(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*+)?"
_OPENING_MARK = rf"""(?:[eEbBxXnN]|[uU]&)?'|(?:[uU]&)?"|\${_TAG}\$"""
_OPENING = re.compile(_OPENING_MARK)
_TOKEN = re.compile(
    rf"""
      (?P<comment>      --[^\n\r]*+ )
    | (?P<block>        /\* )
    | (?P<escape>       [eE]{_ESCAPED}(?:{_BETWEEN}{_ESCAPED})*+ )
    | (?P<unicode>      [uU]&'(?:[^']|'')*+' )
    | (?P<string>       [bBxXnN]?'(?:[^']|'')*+' )
    | (?P<unicode_name> [uU]&"(?:[^"]|"")*+" )
    | (?P<name>         "(?:[^"]|"")*+" )
    | (?P<dollar>       \$(?P<tag>{_TAG})\$.*?\$(?P=tag)\$ )
    | (?P<open>         {_OPENING_MARK} )
    | (?P<number>       (?:[0-9][0-9_]*+(?:\.[0-9_]*+)?|\.[0-9][0-9_]*+)(?:[eE][+-]?[0-9_]++)?\w*+ )
    | (?P<param>        \$[0-9]++ )
    | (?P<word>         [A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*+ )
    | (?P<space>        [\x20\t\n\r\f\v]++ )
    | (?P<other>        . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_UNCLOSED = {"'": Kind.STRING, '"': Kind.NAME, "$": Kind.DOLLAR}


def tokens(sql: str) -> Iterator[Token]:
    """Every token of the text; put together they are the text again."""
    at = 0
    while match := _TOKEN.match(sql, at):
        token = _token(sql, match)
        at += len(token.text)
        yield token


def _token(sql: str, match: re.Match[str]) -> Token:
    group = _group(match)
    if group == "block":
        return _block(sql, match)
    if group == "open":
        return Token(_UNCLOSED[match[0][-1]], sql[match.start() :], closed=False)
    return Token(Kind(group), match[0])


def _group(match: re.Match[str]) -> str:
    """The alternative that matched; a dollar quote's tag is a group inside of one."""
    return "dollar" if match["dollar"] is not None else str(match.lastgroup)


def _block(sql: str, match: re.Match[str]) -> Token:
    """A comment in slashes; they nest."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(sql, match.end()):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return Token(Kind.COMMENT, sql[match.start() : edge.end()])
    return Token(Kind.COMMENT, sql[match.start() :], closed=False)
