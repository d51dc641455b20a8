"""Guardrails: read-only sessions, timeouts, and logins that are proved unable to write.

The workload and the route decide on one of four demands. A catalog workload that reads, on a
Database that is not in production, needs nothing. A workload that inserts rows needs a login that
may fill and empty one table of pgperf's own; it never runs in production. A registered ORM workload
(or the catalog in production) on a direct, persistent route gets a read-only session. Its role may
be able to write; the run's environment then says so. SQL from a user, poolers and connections per
operation need a role that cannot write. pgperf proves that before every run. The site's own
workloads demand the same of the route over which they are captured, and so do pages that web servers
of a production database are asked for (`production_pages`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from typing import Any

from pgperf import catalog
from pgperf.access import called_functions, production_pages
from pgperf.catalog.driver_queries import BULK_INSERTS, SEVEN
from pgperf.catalog.light import LIGHT
from pgperf.core import printable, sql_read_only
from pgperf.core.answers import IDENTIFIER, LINE, TEXT, TRUTH, WHOLE, ControlQuery
from pgperf.core.exceptions import ClientFailed, InvalidDefinition, PreflightRefused
from pgperf.core.layers import connects, over_http
from pgperf.core.limits import STATEMENT_TIMEOUT_S
from pgperf.core.records import Definition, Plan, Route, WorkloadDefinition, most_direct
from pgperf.core.sql_names import quoted
from pgperf.runner.capture import statements
from pgperf.runner.server import version
from pgperf.runner.server.control_connection import ControlConnection
from pgperf.workloads import pages

APPLICATION = "pgperf-guardrails"
#: Settings of every guarded session, as pg_settings.setting has them (ms). A role's own, stricter
#: ones stay.
LIMITS = {
    "statement_timeout": STATEMENT_TIMEOUT_S * 1000,
    "lock_timeout": 1_000,
    "idle_in_transaction_session_timeout": 10_000,
    "client_connection_check_interval": 1_000,
}
#: Those that not every server has. It refuses a session that asks for a setting which it lacks.
_NEWER_LIMITS = ("client_connection_check_interval",)
READ_ONLY = "default_transaction_read_only"
_DENIED = "42501"
#: What a standby says to a transaction that wants to write.
_STANDBY = ("25006", "0A000")


class Demand(StrEnum):
    """What a route needs for a workload."""

    NONE = "none"
    SESSION = "session"  # a read-only session with timeouts
    PROOF = "proof"  # and a role that cannot write
    WRITE = "write"  # timeouts, and a role that may insert into pgperf's own table


@dataclass(frozen=True)
class Access:
    """What a login may do, as its server says. `powers` is empty when it cannot write."""

    role: str
    powers: tuple[str, ...]
    settings: dict[str, str]
    standby: bool
    table: str  # one that it must not be able to change, quoted; "" if there is none

    @property
    def can_write(self) -> bool:
        return bool(self.powers)


@dataclass(frozen=True)
class GuardedRoutes:
    """The routes to measure over, and what the environment of the run says about them."""

    routes: dict[str, Route]
    access: dict[str, str]
    can_write: str  # the role that could, "" if none could

    def facts(self) -> dict[str, Any]:
        found: dict[str, Any] = {"access": self.access} if self.access else {}
        return {**found, "can_write": self.can_write} if self.can_write else found


def is_custom_sql(work: WorkloadDefinition) -> bool:
    """Did a user write its SQL? Unchanged catalog workloads and captured statements do not count."""
    return bool(work.sql or work.other_sql) and not is_catalog(work)


def is_catalog(work: WorkloadDefinition) -> bool:
    """Is it an unchanged workload of the catalog?"""
    bare = replace(work, statements=(), other_statements=())
    return bare in [LIGHT, *SEVEN, *catalog.workloads()]


def check_writing(definition: Definition, production: bool, allow_fixtures: bool) -> None:
    """Raises PreflightRefused unless the workloads that insert rows may do so on this Database."""
    writing = [work for work in definition.workloads if work.bulk]
    if not writing:
        return
    names = ", ".join(work.name for work in writing)
    if production:
        raise PreflightRefused(f"database: {names} insert rows, which never run on a production database")
    if not allow_fixtures:
        raise PreflightRefused(
            f"database: {names} insert rows into tables of pgperf's own; tick 'allow fixtures' on the database"
        )
    for work in writing:
        if work.bulk not in BULK_INSERTS.values() or work.sql or work.is_site or work.other_sql:
            raise PreflightRefused(f"bulk: {work.name} is no bulk insert of the catalog")
    beside = [work.name for work in definition.workloads if not work.bulk and not is_catalog(work)]
    if beside:
        raise PreflightRefused(
            f"access: {names} need a login that may insert rows, {', '.join(beside)} a session that only reads;"
            " run them in benchmarks of their own"
        )


def demand(work: WorkloadDefinition, pooler: str, production: bool, connect: str = "persistent") -> Demand:
    """The demand of that workload on a route with that pooler ("" for none)."""
    if work.bulk:
        return Demand.WRITE
    if is_catalog(work) and not production:
        return Demand.NONE
    if is_custom_sql(work) or pooler or connect != "persistent":
        return Demand.PROOF
    return Demand.SESSION


def check_statements(work: WorkloadDefinition) -> None:
    """The form's rules again, in the worker. Raises InvalidDefinition naming the field."""
    if work.page and (problem := pages.path_problem(work.page.path)):
        raise InvalidDefinition(f"path: {problem}")
    if not is_custom_sql(work):
        return
    for field, sql in (("sql", work.sql), ("other_sql", work.other_sql)):
        if sql:
            sql_read_only.check(field, sql)


def apply(
    plan: Plan, routes: Mapping[str, Route], production: bool, allow_fixtures: bool = False
) -> GuardedRoutes:
    """The routes with guardrails, each tried and proved.

    Raises PreflightRefused with what was found and the remedy, ClientFailed when a server cannot be
    asked.
    """
    definition = plan.definition
    check_writing(definition, production, allow_fixtures)
    sent = {each.workload for each in plan.variants if connects(each.layer) or over_http(each.layer)}
    for work in definition.workloads:
        if work.name in sent or (work.is_site and statements.are_captured(plan)):
            check_statements(work)
    guarded, access, writers = dict(routes), {}, []
    demands = _of_pages(_demands(plan, routes, production), plan, routes, production)
    demands = _of_captures(demands, plan, routes)
    for name, wanted in demands.items():
        if wanted == Demand.WRITE:
            guarded[name], access[name] = _writing(routes[name], _tables(plan, name))
            continue
        guarded[name], found = guard(routes[name], wanted)
        called_functions.check(guarded[name], _custom_sql(plan, name))
        access[name] = _in_words(found, wanted)
        writers += [found.role] if found.can_write else []
    return GuardedRoutes(guarded, access, ", ".join(dict.fromkeys(writers)))


def _demands(plan: Plan, routes: Mapping[str, Route], production: bool) -> dict[str, Demand]:
    """The strictest demand on each route that is used by a layer with a database."""
    found: dict[str, Demand] = {}
    for variant in plan.variants:
        if not connects(variant.layer):
            continue
        route = routes[variant.route]
        work = plan.definition.work(variant.workload)
        wanted = demand(work, route.pooler, production, variant.connect)
        if wanted != Demand.NONE and found.get(route.name) != Demand.PROOF:
            found[route.name] = wanted
    return found


def _of_pages(
    demands: dict[str, Demand], plan: Plan, routes: Mapping[str, Route], production: bool
) -> dict[str, Demand]:
    """The demands, with that of pages that are requested in production on the route of their capture.

    Raises PageRefused if there is no such route.
    """
    works = production_pages.requested(plan, production)
    if route := production_pages.capture_route(works, routes):
        wanted = Demand.PROOF if route.pooler else Demand.SESSION
        return {route.name: wanted} | demands
    return demands


def _of_captures(demands: dict[str, Demand], plan: Plan, routes: Mapping[str, Route]) -> dict[str, Demand]:
    """The demands, with that of the site's own workloads on the route of their capture: all of them
    are captured there, whichever variants the plan has.
    """
    if not statements.are_captured(plan):
        return demands
    route = most_direct(routes.values())
    is_proof = route.pooler or demands.get(route.name) == Demand.PROOF
    return {**demands, route.name: Demand.PROOF if is_proof else Demand.SESSION}


def _custom_sql(plan: Plan, route: str) -> list[WorkloadDefinition]:
    """The workloads whose SQL a user wrote and that are sent over the route."""
    names = {each.workload for each in plan.variants if each.route == route and connects(each.layer)}
    return [work for work in plan.definition.workloads if work.name in names and is_custom_sql(work)]


def _tables(plan: Plan, route: str) -> list[str]:
    """The tables that clients on the route insert into."""
    names = {each.workload for each in plan.variants if each.route == route}
    return [work.bulk.table for work in plan.definition.workloads if work.name in names and work.bulk]


def _writing(route: Route, tables: list[str]) -> tuple[Route, str]:
    """The route with the timeouts of every guarded session, and what its login may do.

    Raises PreflightRefused with the GRANT where it may not fill, count and empty the tables.
    """
    with ControlConnection(route, APPLICATION) as connection:
        role, *_others = connection.one(_WHO)
        settings = dict(connection.all(_SETTINGS))
        lacking = [table for table in tables if not connection.one(_may_write(table))[0]]
    if lacking:
        raise PreflightRefused(
            f"access: over route {route.name}, {role} may not fill and empty {', '.join(lacking)}. Run as their owner: "
            f"GRANT USAGE ON SCHEMA pgperf TO {quoted(role)}; "
            f"GRANT SELECT, INSERT, TRUNCATE ON {', '.join(lacking)} TO {quoted(role)};"
        )
    if not route.pooler:
        route = replace(route, options=_in_options(_limits(settings)))
    return route, f"{role}: inserts rows into {', '.join(tables)}, and empties them; session not read-only"


def _may_write(table: str) -> ControlQuery:
    """Whether the login may insert into the table, count its rows and empty it."""
    asked = " AND ".join(
        f"has_table_privilege('{table}', '{name}')" for name in ("INSERT", "SELECT", "TRUNCATE")
    )
    return ControlQuery(
        "its rights on a table of pgperf's own",
        f"SELECT has_schema_privilege('pgperf', 'USAGE') AND {asked}",
        (TRUTH,),
    )


def guard(route: Route, wanted: Demand) -> tuple[Route, Access]:
    """The route as it may be used: with its limits set and its login checked; and what the login
    may do.
    """
    access = examine(route)
    if wanted == Demand.PROOF:
        _prove(route, access)
    if not route.pooler:
        route = replace(route, options=_options(access.settings))
        access = replace(access, settings=_settings(route))
    _check_settings(route, access)
    return route, access


def examine(route: Route) -> Access:
    """What the login of a route may do.

    Raises PreflightRefused for a server that is too old, ClientFailed when it cannot be asked.
    """
    with ControlConnection(route, APPLICATION) as connection:
        role, standby, number, schema, table = connection.one(_WHO)
        version.check(number)
        asked = [_POWERS, *(query for least, query in _NEWER_POWERS.items() if number >= least)]
        powers = tuple(printable.one_line(words) for query in asked for (words,) in connection.all(query))
        settings = dict(connection.all(_SETTINGS))
    return Access(role, powers, settings, standby, f"{schema}.{table}" if schema and table else "")


def _settings(route: Route) -> dict[str, str]:
    with ControlConnection(route, APPLICATION) as connection:
        return dict(connection.all(_SETTINGS))


def _options(settings: Mapping[str, str]) -> str:
    """What the startup packet asks for: read-only, and each limit."""
    return _in_options({READ_ONLY: "on", **_limits(settings)})


def _limits(settings: Mapping[str, str]) -> dict[str, Any]:
    """Those that the server has, each as strict as the role's own. They are all sent: the options of
    an alias of the site may have others, which come before these.
    """
    return {name: settings[name] for name in LIMITS if name in settings} | _lacking_limits(settings)


def _lacking_limits(settings: Mapping[str, str]) -> dict[str, Any]:
    """Those that the server has and that the session does not keep."""
    return {
        name: most
        for name, most in LIMITS.items()
        if (name in settings or name not in _NEWER_LIMITS) and not _keeps(settings.get(name), most)
    }


def _in_options(settings: Mapping[str, Any]) -> str:
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


def _keeps(value: str | None, most: int) -> bool:
    """0 is no limit at all."""
    return value is not None and value.isdigit() and 0 < int(value) <= most


def _check_settings(route: Route, access: Access) -> None:
    """Check the session's own settings: an unknown pooler may have dropped those that we requested."""
    wrong = list(_lacking_limits(access.settings))
    if access.settings.get(READ_ONLY) != "on":
        wrong.insert(0, READ_ONLY)
    if wrong:
        alter = " ".join(f"ALTER ROLE {quoted(access.role)} SET {name} = {_wanted(name)};" for name in wrong)
        raise PreflightRefused(
            f"access: sessions over route {route.name} do not keep {', '.join(wrong)}. A pooler takes them from the "
            f"role only, so run as a superuser: {alter}"
        )


def _wanted(name: str) -> str:
    return "on" if name == READ_ONLY else f"'{LIMITS[name]}ms'"


def _prove(route: Route, access: Access) -> None:
    """Raises PreflightRefused unless the role has no power to write and the server refuses it when
    tried.
    """
    if access.powers:
        raise PreflightRefused(
            f"access: this run needs a login that cannot write, and over route {route.name} {access.role} "
            f"{'; '.join(access.powers)}. `manage.py pgperf doctor` prints the SQL that makes one"
        )
    attempts = ["CREATE SCHEMA pgperf_write_probe"]
    attempts += [f"DELETE FROM {access.table} WHERE false"] if access.table else []
    accepted = (_DENIED, *_STANDBY) if access.standby else (_DENIED,)
    for attempt in attempts:
        code = _refusal(route, attempt)
        if code not in accepted:
            how = f"failed with {code} instead of {_DENIED}" if code else "was not refused"
            raise PreflightRefused(f"access: over route {route.name}, as {access.role}, {attempt!r} {how}")


def _refusal(route: Route, attempt: str) -> str:
    """The code with which the server refuses it, "" if it does not; rolled back either way."""
    with ControlConnection(route, APPLICATION) as connection:
        try:
            connection.query(f"BEGIN READ WRITE; {attempt}; ROLLBACK")
        except ClientFailed as error:
            if error.sqlstate:
                return error.sqlstate
            raise
    return ""


def _in_words(access: Access, wanted: Demand) -> str:
    if wanted == Demand.PROOF:
        return f"{access.role}: cannot write, proved"
    if not access.can_write:
        return f"{access.role}: cannot write; read-only session"
    return f"{access.role}: this role can write ({'; '.join(access.powers)}); read-only session"


def definition_demands(definition: Definition, poolers: Iterable[str], production: bool) -> set[Demand]:
    """The demands of a run, by the poolers of its routes; for the preview."""
    pairs = product(definition.workloads, poolers)
    return {demand(work, pooler, production) for work, pooler in pairs}


_WHO_SQL = """
SELECT current_user, pg_is_in_recovery(), current_setting('server_version_num')::int, relation.nspname,
       relation.relname
FROM (SELECT) AS always LEFT JOIN (
    SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
      AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_toast%'
    ORDER BY c.oid LIMIT 1
) AS relation ON true
"""
_SETTINGS_SQL = "SELECT name, setting FROM pg_settings WHERE name IN ({})".format(
    ", ".join(f"'{name}'" for name in (READ_ONLY, *LIMITS))
)
_WHO = ControlQuery(
    "the role of this connection", _WHO_SQL, (LINE, TRUTH, WHOLE, IDENTIFIER.or_null, IDENTIFIER.or_null)
)
_SETTINGS = ControlQuery("the settings of the session", _SETTINGS_SQL, (TEXT, TEXT))
#: Every role that the login may become.
_ROLES = """
WITH roles AS (
    SELECT * FROM pg_roles WHERE pg_has_role(session_user, oid, 'MEMBER') OR pg_has_role(current_user, oid, 'MEMBER')
)"""
#: One row of words for each power of these roles to change something.
POWERS = f"""{_ROLES}, relations AS (
    SELECT c.oid, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_toast%'
      AND c.relpersistence <> 't'
), super AS (
    SELECT count(*) > 0 AS is_super FROM pg_roles
    WHERE rolsuper AND rolname IN (session_user, current_user)
), powers (place, words) AS (
    SELECT 1, 'is a superuser' FROM super WHERE is_super
    UNION ALL
    SELECT 2, 'may become the superuser ' || quote_ident(rolname) FROM roles WHERE rolsuper
    UNION ALL
    SELECT 3, 'may create roles' FROM roles WHERE rolcreaterole HAVING count(*) > 0
    UNION ALL
    SELECT 4, 'may create databases' FROM roles WHERE rolcreatedb HAVING count(*) > 0
    UNION ALL
    SELECT 5, 'may replicate' FROM roles WHERE rolreplication HAVING count(*) > 0
    UNION ALL
    SELECT 6, 'is a member of ' || rolname FROM roles
    WHERE rolname IN ('pg_write_all_data', 'pg_execute_server_program', 'pg_write_server_files',
                      'pg_read_server_files', 'pg_signal_backend', 'pg_maintain', 'pg_checkpoint',
                      'pg_create_subscription', 'pg_use_reserved_connections')
    UNION ALL
    SELECT 7, 'owns ' || count(*) || ' objects' FROM pg_shdepend
    WHERE deptype = 'o' AND refclassid = 'pg_authid'::regclass AND refobjid IN (SELECT oid FROM roles)
      AND dbid IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
    HAVING count(*) > 0
    UNION ALL
    SELECT 8, 'may change ' || count(DISTINCT c.oid) || ' tables, such as ' || min(c.oid::regclass::text)
    FROM relations c CROSS JOIN roles r
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
      AND (has_table_privilege(r.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER'
               || CASE WHEN current_setting('server_version_num')::int >= 170000 THEN ', MAINTAIN' ELSE '' END)
           OR has_any_column_privilege(r.oid, c.oid, 'INSERT, UPDATE'))
    HAVING count(*) > 0
    UNION ALL
    SELECT 9, 'may advance ' || count(DISTINCT c.oid) || ' sequences, such as ' || min(c.oid::regclass::text)
    FROM relations c CROSS JOIN roles r
    WHERE c.relkind = 'S' AND has_sequence_privilege(r.oid, c.oid, 'USAGE, UPDATE')
    HAVING count(*) > 0
    UNION ALL
    SELECT 10, 'may create objects in schema ' || string_agg(DISTINCT quote_ident(n.nspname), ', ')
    FROM pg_namespace n CROSS JOIN roles r
    WHERE n.nspname NOT LIKE 'pg\\_temp%' AND n.nspname NOT LIKE 'pg\\_toast%'
      AND has_schema_privilege(r.oid, n.oid, 'CREATE')
    HAVING count(*) > 0
    UNION ALL
    SELECT 11, 'may create schemas in this database' FROM roles r
    WHERE has_database_privilege(r.oid, current_database(), 'CREATE')
    HAVING count(*) > 0
    UNION ALL
    SELECT 12, 'may change ' || count(DISTINCT m.oid) || ' large objects, such as ' || min(m.oid)
    FROM pg_largeobject_metadata m CROSS JOIN aclexplode(m.lomacl) a
    WHERE a.privilege_type = 'UPDATE' AND (a.grantee = 0 OR a.grantee IN (SELECT oid FROM roles))
    HAVING count(*) > 0
    UNION ALL
    SELECT 13, 'may create foreign servers of ' || string_agg(DISTINCT quote_ident(f.fdwname), ', ')
    FROM pg_foreign_data_wrapper f CROSS JOIN roles r WHERE has_foreign_data_wrapper_privilege(r.oid, f.oid, 'USAGE')
    HAVING count(*) > 0
    UNION ALL
    SELECT 14, 'may create user mappings for ' || string_agg(DISTINCT quote_ident(s.srvname), ', ')
    FROM pg_foreign_server s CROSS JOIN roles r WHERE has_server_privilege(r.oid, s.oid, 'USAGE')
    HAVING count(*) > 0
)
SELECT words FROM powers, super WHERE place = 1 OR NOT is_super ORDER BY place, words
"""
_POWERS = ControlQuery("what the role may change", POWERS, (TEXT,))
#: By the first version of the server that has them. A superuser needs no privilege on a setting.
_NEWER_POWERS = {
    150000: ControlQuery(
        "the settings that the role may change",
        f"""{_ROLES}
SELECT 'may change settings of the server, such as ' || min(p.parname)
FROM pg_parameter_acl p CROSS JOIN aclexplode(p.paracl) a
WHERE a.privilege_type = 'ALTER SYSTEM' AND (a.grantee = 0 OR a.grantee IN (SELECT oid FROM roles WHERE NOT rolsuper))
HAVING count(*) > 0
""",
        (TEXT,),
    )
}
