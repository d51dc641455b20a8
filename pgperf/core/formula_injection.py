"""Protects spreadsheets from formulas in text. Standard library only.

A spreadsheet may split a line at other separators than the file's, drop quotes and invisible
characters, and read full-width signs as their ASCII forms. So an apostrophe goes before each sign
with which a cell could then begin.
"""

import re

#: The signs that begin a formula, with those that compatibility forms stand for.
SIGNS = "=+-@" + "＝＋－＠﹦﹢﹣﹫⁼⁺⁻₌₊₋⩵⩶﬩−"
#: After each of these a new cell may begin.
SEPARATORS = ",;|\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
#: Quotes, spaces, control and format characters, in ranges: a spreadsheet may drop them.
_DROPPED = (
    '"\x00-\x08\x0e-\x1b\x1f\x20\x7f-\x84\x86-\xa0\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2'
    "\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u202a-\u202f\u205f-\u206f\u3000\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)

_START = rf"(?:\A|[{SEPARATORS}])[{_DROPPED}]*+"
_SIGN = rf"(?=[{re.escape(SIGNS)}])"
#: A leading tab or line break hides what follows it.
_HIDING = r"(?=[\t\r\n])"
_RISKY = re.compile(rf"(\A'*+{_HIDING}|{_START}'*+{_SIGN})")
_ESCAPED = re.compile(rf"\A'('*+){_HIDING}|({_START})'('*+){_SIGN}")


def harmless(text: str) -> str:
    """Put an apostrophe before each formula, and before each text that looks like an escaped one."""
    return _RISKY.sub(r"\1'", text)


def unharmed(text: str) -> str:
    """Undo `harmless`: the original text."""
    return _ESCAPED.sub(r"\1\2\3", text)


def printable(text: str) -> str:
    """The text without control characters, which a sheet cannot contain. Tabs and newlines stay."""
    return "".join(char for char in text if char.isprintable() or char in "\t\r\n")
