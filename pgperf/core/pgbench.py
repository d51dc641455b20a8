"""What pgperf knows of pgbench: its versions, and a script that runs the statements of one operation.
Pure, standard library only.

pgbench splits a script at semicolons, ends a statement at a backslash outside of quotes, and
replaces `:name` by a variable, inside of quotes too. So a script is not the plain text of the
statements.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.protocol import Statement
from pgperf.core.sql_lexer import Token, TokenKind, tokens

#: The first version whose throughput does not depend on the time of the first connections.
OLDEST = 14
#: The variables that pgbench itself sets. It replaces these in mode simple, and leaves unknown names.
_PREDEFINED = ("scale", "client_id", "random_seed", "default_seed")
_NAME = re.compile(r"(?<!:):([A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)")
_OWN = "pgperf_"
#: Connecting may take this many times as long as when it was tried.
SLOWER = 1.25
#: A shorter count would include too much of the first transactions on fresh connections.
_LEAST_S = 0.8
_VERSION = re.compile(r"pgbench \(PostgreSQL\) (\d\S*)")
_DIGITS = re.compile(r"\d+")
_META_COMMAND = (
    "sql: pgbench takes a backslash outside of quotes for the start of a command of its own;"
    " leave this layer out"
)
_VARIABLE = (
    "sql: in mode {mode}, pgbench takes :{name} for one of its variables;"
    " choose mode simple, or leave this layer out"
)
_TYPED = (
    "args: pgbench cannot send the type of a value, which this workload fixes;"
    " choose mode simple, or leave this layer out"
)


@dataclass(frozen=True)
class Script:
    """The text of a script, and the variables that it needs: name -> value."""

    text: str
    variables: dict[str, str]


def time_s(connect_s: float, asked_s: float) -> int:
    """Whole seconds, as pgbench measures, that hold connecting, the lead-in and the window."""
    return math.ceil(SLOWER * connect_s + max(_LEAST_S, asked_s))


def version_of(said: str) -> str:
    """The version in the answer to `--version`, such as "18.6"; "" where it gives none."""
    found = _VERSION.match(said)
    return found[1] if found else ""


def version_refusal(version: str) -> str:
    """Why a pgbench of that version cannot be used; "" if it can."""
    if not version:
        return "does not say its version"
    return "" if major(version) >= OLDEST else f"is of version {version}, and pgperf needs {OLDEST} or newer"


def major(version: str) -> int:
    """The major version of "18.6", "19devel" or "17beta1"."""
    return int(_DIGITS.match(version)[0])  # type: ignore[index]


def script(statements: Sequence[Statement], mode: str) -> Script:
    """The script for that mode.

    In mode simple the values stand in the text. In the other modes they are pgbench's variables,
    which it sends as parameters in text format without a type. A variable that is not set is NULL.
    Raises InvalidDefinition for statements that pgbench would change.
    """
    if mode == "simple":
        texts = [_one_command(_without_variables(each.literal)) for each in statements]
        return Script("".join(texts), {f"{_OWN}{name}": f":{name}" for name in _PREDEFINED})
    variables: dict[str, str] = {}
    texts = []
    for number, each in enumerate(statements):
        if any(each.arg_oids):
            raise InvalidDefinition(_TYPED)
        _refuse_variables(each.numbered, mode)
        texts.append(_one_command(each.numbered, f"{_OWN}{number}_"))
        values = {f"{_OWN}{number}_{at}": value for at, value in enumerate(each.args_text, 1)}
        variables |= {name: value for name, value in values.items() if value is not None}
    return Script("".join(texts), variables)


def _without_variables(sql: str) -> str:
    """`sql` with other names in place of pgbench's own variables; their values are the old names."""
    return _NAME.sub(lambda found: f":{_OWN}{found[1]}" if found[1] in _PREDEFINED else found[0], sql)


def _refuse_variables(sql: str, mode: str) -> None:
    if found := _NAME.search(sql):
        raise InvalidDefinition(_VARIABLE.format(mode=mode, name=found[1]))


def _one_command(sql: str, parameters: str = "") -> str:
    """The statement as one command of a script, `$1` as the variable of that prefix."""
    found = list(tokens(sql))
    while found and (found[-1].kind in (TokenKind.SPACE, TokenKind.COMMENT) or found[-1].text == ";"):
        found.pop()
    return "".join(_escaped(token, parameters) for token in found) + "\n;\n"


def _escaped(token: Token, parameters: str) -> str:
    match token:
        case Token(TokenKind.OTHER, "\\"):
            raise InvalidDefinition(_META_COMMAND)
        case Token(TokenKind.OTHER, ";"):
            return "\\;"
        case Token(TokenKind.PARAM) if parameters:
            return f":{parameters}{token.text[1:]} "  # the space ends the name
    return token.text
