"""Is a text one SQL statement that reads? The first of two nets (standard library only).

It keeps mistakes and plain mischief out, at the field where they were typed. It is no proof: what a statement may do
is for the role to say, and `rails` proves that the role cannot write.
"""

import re

from pgperf.exceptions import InvalidDefinition

MAX_BYTES = 65_535

_READERS = ("select", "with", "values", "table", "show")
#: Functions that change something though they stand in a SELECT, or run SQL given as a string.
_REFUSED = re.compile(
    r"\b(lo_\w+|loread|lowrite|(?:pg_(?:try_)?advisory|dblink|pg_read_|pg_ls_|pg_file_|pg_logical_|pg_replication_"
    r"|pg_create_|pg_drop_|pg_promote|pg_switch_|pg_import_)\w*|pg_stat_file|pg_terminate_backend|pg_cancel_backend"
    r"|pg_reload_conf|pg_rotate_logfile|pg_notify|set_config|nextval|setval"
    r"|(?:query|cursor|table|schema|database)_to_xml\w*)\s*\(",
    re.IGNORECASE,
)
#: What a text consists of; whatever is left of a quote or a comment was never closed.
_PARTS = re.compile(
    r"""
      (?P<comment> --[^\n]* )
    | (?P<block>   /\* )
    | (?P<unicode> \b[uU]&['"] )
    | (?P<escape>  \b[eE]'(?:[^'\\]|''|\\.)*' )
    | (?P<text>    '(?:[^']|'')*' )
    | (?P<name>    "(?:[^"]|"")+" )
    | (?P<dollar>  (?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$ .*? \$(?P=tag)\$ )
    | (?P<open>    ['"] | (?<![\w$])\$(?:[^\W\d]\w*)?\$ )
    | (?P<plain>   . )
    """,
    re.VERBOSE | re.DOTALL,
)


def check(field: str, sql: str) -> None:
    """Raises InvalidDefinition, naming the field, for what is not one statement that reads."""
    problem = _unfit_text(sql) or _unfit_statement(_skeleton(field, sql))
    if problem:
        raise InvalidDefinition(f"{field}: {problem}")


def _unfit_text(sql: str) -> str:
    if "\x00" in sql or any("\ud800" <= character <= "\udfff" for character in sql):
        return "SQL is valid Unicode without NUL characters"
    if len(sql.encode()) > MAX_BYTES:
        return f"longer than {MAX_BYTES} bytes; give long values as arguments"
    return ""


def _unfit_statement(skeleton: str) -> str:
    """Why the statement, its quotes emptied and its comments gone, is refused; "" if it is not."""
    body = skeleton.strip().removesuffix(";").strip()
    first = re.match(r"[(\s]*(\w*)", body)
    word = first[1].lower() if first else ""
    if not body:
        return "no statement"
    if "\\" in body:
        return "a backslash outside quotes is no SQL (commands of psql do not work here)"
    if ";" in body:
        return "one statement only, without a semicolon inside"
    if word not in _READERS:
        return f"must read: begin with {', '.join(reader.upper() for reader in _READERS)}"
    refused = _REFUSED.search(body)
    return f"{refused[1]}() changes something and is refused" if refused else ""


def _skeleton(field: str, sql: str) -> str:
    """The text without its comments and with empty quotes; quoted names are written plainly."""
    pieces, at = [], 0
    while at < len(sql):
        part = _PARTS.match(sql, at)
        assert part
        at = part.end()
        match part.lastgroup:
            case "plain":
                pieces.append(part[0])
            case "name":
                pieces.append(re.sub(r"\W", "_", part[0][1:-1]))
            case "block":
                at = _after_block(field, sql, part.start())
                pieces.append(" ")
            case "comment":
                pieces.append(" ")
            case "unicode":
                raise InvalidDefinition(f"{field}: write U&\"...\" and U&'...' as plain text")
            case "open":
                raise InvalidDefinition(f"{field}: a quote that is not closed: {part[0]}")
            case _:
                pieces.append(_emptied(field, part[0]))
    return "".join(pieces)


def _emptied(field: str, quoted: str) -> str:
    """A server with standard_conforming_strings off would see another end of 'a\\'."""
    if quoted.startswith("'") and "\\" in quoted:
        raise InvalidDefinition(f"{field}: write a backslash in quotes as E'\\\\', or give it as an argument")
    return "''"


def _after_block(field: str, sql: str, start: int) -> int:
    """Where a comment ends; comments nest."""
    depth = 0
    for mark in re.compile(r"/\*|\*/").finditer(sql, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise InvalidDefinition(f"{field}: a comment that is not closed")
