"""A statement in a few words: what is read, without the list of columns."""

import re

#: A list of columns that is as short stays.
_SHORT = 24
_SELECT = re.compile(r"SELECT\s+(?:DISTINCT\s+)?", re.IGNORECASE)
_TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]|\bFROM\b""", re.IGNORECASE)


def short_sql(text: str, most: int = 160) -> str:
    """`most` characters at most, on one line."""
    line = _without_columns(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _without_columns(line: str) -> str:
    begin = _SELECT.match(line)
    end = _from(line, begin.end()) if begin else None
    if begin is None or end is None or end - begin.end() <= _SHORT:
        return line
    return f"{begin.group()}… {line[end:]}"


def _from(line: str, start: int) -> int | None:
    """Where the FROM of the statement stands: not of a subquery, a function or a name."""
    depth = 0
    for token in _TOKEN.finditer(line, start):
        word = token.group()
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth == 0 and word.upper() == "FROM":
            return token.start()
    return None
