"""Splits SQL into tokens by PostgreSQL's rules, with `standard_conforming_strings` on. Standard
library only.

This is a lexer, not a parser. It classifies letters, digits and spaces as the server does: every
character beyond ASCII belongs to a word, Unicode spaces included. So it finds quotes where the
server finds them.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple


class TokenKind(StrEnum):
    """The kind of a token."""

    COMMENT = "comment"
    STRING = "string"  # in plain quotes, also bit strings and national strings
    ESCAPE = "escape"  # E'...': with backslash escapes, also in its continuation lines
    UNICODE = "unicode"  # U&'...'
    DOLLAR = "dollar"
    NUMBER = "number"
    NAME = "name"  # in double quotes
    UNICODE_NAME = "unicode_name"  # U&"..."
    PARAM = "param"  # $1
    WORD = "word"
    SPACE = "space"
    OTHER = "other"


#: Those of values that stand in the text.
VALUE_KINDS = {
    TokenKind.STRING, TokenKind.ESCAPE, TokenKind.UNICODE, TokenKind.DOLLAR, TokenKind.NUMBER,
}  # fmt: skip


class Token(NamedTuple):
    """A part of the text. An unclosed quote or comment extends to the end of the text."""

    kind: TokenKind
    text: str
    closed: bool = True

    @property
    def is_certain(self) -> bool:
        """Does it end there whatever `standard_conforming_strings` is? Off, a backslash escapes the
        quote that follows.
        """
        return self.kind is not TokenKind.STRING or "\\'" not in self.text

    @property
    def opening(self) -> str:
        """The opening quote with its prefix: `'`, `E'`, `$tag$`."""
        match = _OPENING.match(self.text)
        return match[0] if match else ""


#: Separates the parts of a continued string: a newline, with spaces and comments around it.
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
_UNCLOSED = {"'": TokenKind.STRING, '"': TokenKind.NAME, "$": TokenKind.DOLLAR}


def tokens(sql: str) -> Iterator[Token]:
    """Every token of the text, in order. Joined, they are the text again."""
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
    return Token(TokenKind(group), match[0])


def _group(match: re.Match[str]) -> str:
    """The alternative that matched. The tag of a dollar quote is a group inside an alternative."""
    return "dollar" if match["dollar"] is not None else str(match.lastgroup)


def _block(sql: str, match: re.Match[str]) -> Token:
    """A block comment. Block comments nest."""
    depth = 1
    for edge in _COMMENT_EDGE.finditer(sql, match.end()):
        depth += 1 if edge[0] == "/*" else -1
        if not depth:
            return Token(TokenKind.COMMENT, sql[match.start() : edge.end()])
    return Token(TokenKind.COMMENT, sql[match.start() :], closed=False)
