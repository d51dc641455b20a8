"""Checks that a text is one SQL statement that only reads. Standard library only.

This check catches mistakes at the field where they were typed. It proves nothing: the permissions
of the readonly role decide what a statement may do, and `access.guardrails` checks that the role
cannot write.
"""

import re

from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.sql_lexer import Token, TokenKind, tokens

MAX_BYTES = 65_535

_READERS = ("select", "with", "values", "table", "show")
#: Functions that change something although they are called in a SELECT, or that run SQL from a
#: string.
_REFUSED = re.compile(
    r"\b(lo_\w+|loread|lowrite|(?:pg_(?:try_)?advisory|dblink|pg_read_|pg_ls_|pg_file_|pg_logical_|pg_replication_"
    r"|pg_create_|pg_drop_|pg_promote|pg_switch_|pg_import_)\w*|pg_stat_file|pg_terminate_backend|pg_cancel_backend"
    r"|pg_reload_conf|pg_rotate_logfile|pg_notify|set_config|nextval|setval"
    r"|(?:query|cursor|table|schema|database)_to_xml\w*)\s*\(",
    re.IGNORECASE,
)


def check(field: str, sql: str) -> None:
    """Raises InvalidDefinition, which names the field, unless the text is one statement that reads."""
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
    """Why the statement is refused; "" if it is not.

    `skeleton` has empty quotes and no comments.
    """
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
    """The text without comments and with empty quotes. Quoted names become plain words."""
    pieces = []
    for token in tokens(sql):
        problem = _unfit_token(token)
        if problem:
            raise InvalidDefinition(f"{field}: {problem}")
        pieces.append(_bare(token))
    return "".join(pieces)


def _unfit_token(token: Token) -> str:
    """Why the token is refused; "" if it is not."""
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
