"""Which functions a user's SQL calls, as the catalog of the server has them.

Every name that may call a function is looked up in pg_proc over the route that sends the SQL: all
overloads of the name in the schemas of the search path, or in the schema that the text names. A
name that the server does not have is left to the server.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pgperf.conf import get_settings
from pgperf.core import sql_calls, sql_functions, sql_parameters
from pgperf.core.answers import LINE, TRUTH, ControlQuery
from pgperf.core.exceptions import InvalidDefinition
from pgperf.core.records import Route, WorkloadDefinition
from pgperf.core.sql_calls import Call
from pgperf.runner.server.control_connection import ControlConnection

_CATALOG = "pg_catalog"


@dataclass(frozen=True)
class Function:
    """The overloads of one name in one schema that a call may reach.

    `own`: they are the site's own: in no extension, not in pg_catalog and not in C.
    """

    schema: str
    name: str
    own: bool
    volatile: bool  # at least one of them is

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


def check(route: Route, works: Iterable[WorkloadDefinition]) -> None:
    """Raises InvalidDefinition, which names the field, if SQL of a workload calls a function that
    may do more than read. Raises ClientFailed when the server cannot be asked.
    """
    fields = list(_fields(works))
    if not any(calls for _field, calls in fields):
        return
    with ControlConnection(route, "pgperf-guardrails") as connection:
        for field, calls in fields:
            found = functions(connection, calls)
            if reason := next(filter(None, map(refusal, found)), ""):
                raise InvalidDefinition(f"{field}: over route {route.name}, {reason}")


def functions(connection: ControlConnection, calls: Iterable[Call]) -> list[Function]:
    """The functions of the server that these names may call, sorted by schema and name."""
    names = list(calls)
    if not names:
        return []
    values = ", ".join(_row(call) for call in names)
    sql = _LOOKUP.replace("{calls}", values)
    query = ControlQuery("the functions that a statement calls", sql, (LINE, LINE, TRUTH, TRUTH))
    return [Function(*row) for row in connection.all(query)]


def refusal(function: Function) -> str:
    """Why no SQL written by a user may call the function; "" if it may."""
    may_allow = f'a site that trusts it adds "{function}" to PGPERF["ALLOWED_FUNCTIONS"]'
    if function.schema != _CATALOG and str(function) in get_settings().ALLOWED_FUNCTIONS:
        return ""
    listed = "" if function.own else sql_functions.refusal(function.name)
    if listed:
        rest = "" if function.schema == _CATALOG else f"; {may_allow}"
        return f"{function}() is refused: it {listed}{rest}"
    if not function.volatile or (not function.own and function.name in sql_functions.HARMLESS):
        return ""
    if function.schema == _CATALOG:
        return f"{function}() is refused: it is volatile, and pgperf does not know it as harmless"
    return f"{function}() is refused: it is volatile, so it may do more than read; {may_allow}"


def _fields(works: Iterable[WorkloadDefinition]) -> Iterator[tuple[str, list[Call]]]:
    """The calls of each field, in every form in which the clients send it."""
    for work in works:
        for field, sql, args in (
            ("sql", work.sql, work.args),
            ("other_sql", work.other_sql, work.other_args),
        ):
            sent = [
                form
                for each in sql_parameters.statements(sql, args)
                for form in (each.literal, each.numbered)
            ]
            yield field, list(dict.fromkeys(call for form in sent for call in sql_calls.calls(form)))


def _row(call: Call) -> str:
    return sql_parameters.literal("(%s, %s, %s)", (call.schema, call.name, call.dotted))


#: `name` is cut to 63 bytes as the server cuts the name in the text. The notation value.name calls
#: functions of one argument only.
_LOOKUP = """
SELECT n.nspname, p.proname,
       n.nspname <> 'pg_catalog' AND l.lanname NOT IN ('c', 'internal')
       AND NOT EXISTS (SELECT 1 FROM pg_depend d
                       WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e') AS own,
       bool_or(p.provolatile = 'v')
FROM (VALUES {calls}) AS called (schema, name, dotted)
JOIN pg_proc p ON p.proname = called.name::name
JOIN pg_namespace n ON n.oid = p.pronamespace
JOIN pg_language l ON l.oid = p.prolang
WHERE CASE called.schema WHEN '' THEN n.nspname = ANY (current_schemas(true))
      ELSE n.nspname = called.schema::name END
  AND (NOT called.dotted OR p.provariadic <> 0 OR 1 BETWEEN p.pronargs - p.pronargdefaults AND p.pronargs)
GROUP BY n.nspname, p.proname, own ORDER BY n.nspname, p.proname, own
"""
