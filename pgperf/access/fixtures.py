"""Creates and drops the tables and rows of workloads, where the Database permits it."""

import logging

from pgperf.catalog import FIXTURES, Fixture
from pgperf.core import printable
from pgperf.core.answers import TRUTH, ControlQuery
from pgperf.core.exceptions import ClientFailed, FixtureMissing
from pgperf.core.records import Route
from pgperf.models import Database
from pgperf.runner.server.control_connection import ControlConnection

logger = logging.getLogger(__name__)


def ensure(name: str, database: Database, route: Route) -> bool:
    """Make the fixture where it is missing; True if it was made. An empty name needs nothing.

    Raises FixtureMissing with the SQL or the box to tick, ClientFailed when the server cannot be
    asked.
    """
    if not name:
        return False
    fixture = _known(name)
    with ControlConnection(route, "pgperf-fixture") as connection:
        return _ensure(fixture, database, route, connection)


def exists(name: str, route: Route) -> bool:
    """Is the fixture there? Raises FixtureMissing for an unknown name, ClientFailed when the server
    cannot be asked.
    """
    with ControlConnection(route, "pgperf-fixture") as connection:
        return _is_there(_known(name), connection)


def present(route: Route) -> list[str]:
    """The names of the fixtures that are there. Raises ClientFailed if the server cannot be asked."""
    with ControlConnection(route, "pgperf-fixture") as connection:
        return [fixture.name for fixture in FIXTURES.values() if _is_there(fixture, connection)]


def drop_script() -> str:
    """The SQL that drops every fixture, for people who run it themselves."""
    drops = (statement for fixture in FIXTURES.values() for statement in fixture.drop)
    return "\n".join(f"{statement};" for statement in (*drops, "DROP SCHEMA IF EXISTS pgperf"))


def drop(database: Database, route: Route) -> list[str]:
    """Remove every fixture that is there, and the schema with the last thing in it; what went.

    What carries no comment of ours stays. Raises FixtureMissing where the database allows no
    fixtures, ClientFailed when the server cannot be asked or refuses.
    """
    if not database.allow_fixtures:
        raise FixtureMissing(
            f"fixture: database {database} does not allow fixtures, so pgperf touches none there"
        )
    with ControlConnection(route, "pgperf-fixture") as connection:
        there = [fixture for fixture in FIXTURES.values() if _is_there(fixture, connection)]
        for statement in (statement for fixture in there for statement in fixture.drop):
            connection.query(statement)
        gone = [fixture.name for fixture in there]
        if there and _drop_empty_schema(connection):
            gone.append("schema pgperf")
    if gone:
        logger.info("dropped %s in database %s", ", ".join(gone), database)
    return gone


def drop_empty_schema(route: Route) -> bool:
    """Drop the schema pgperf if the login owns it and it is empty; True if it was dropped.

    Raises ClientFailed when the server cannot be asked or refuses.
    """
    with ControlConnection(route, "pgperf-fixture") as connection:
        return _drop_empty_schema(connection)


def _drop_empty_schema(connection: ControlConnection) -> bool:
    if not _yes(connection, _OWN_EMPTY_SCHEMA):
        return False
    connection.query("DROP SCHEMA pgperf")
    return True


_OWN_EMPTY_SCHEMA = (
    "SELECT EXISTS (SELECT FROM pg_namespace n WHERE n.nspname = 'pgperf' AND pg_has_role(n.nspowner, 'USAGE')"
    " AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid"
    " AND d.deptype = 'n'))"  # default privileges go with the schema
)


def statements(name: str) -> str:
    """The SQL that makes a fixture, for people who run it themselves."""
    return "\n".join(f"{statement};" for statement in FIXTURES[name].create)


def _known(name: str) -> Fixture:
    if name not in FIXTURES:
        raise FixtureMissing(f"fixture: {name!r} is unknown; choose from {', '.join(FIXTURES)}")
    return FIXTURES[name]


def _ensure(fixture: Fixture, database: Database, route: Route, connection: ControlConnection) -> bool:
    if _is_there(fixture, connection):
        return False
    if not database.allow_fixtures:
        raise FixtureMissing(
            f"fixture: the tables of {fixture.name!r} are not in database {database}. Tick 'allow fixtures' there, "
            f"or run this as their owner:\n{statements(fixture.name)}"
        )
    if _yes(connection, "SELECT pg_is_in_recovery()"):
        raise FixtureMissing(_on_standby(fixture, route))
    try:
        for statement in fixture.create:
            connection.query(statement)
    except ClientFailed as error:
        raise FixtureMissing(_denied(fixture, route, error)) from None
    if not _is_there(fixture, connection):
        raise FixtureMissing(f"fixture: {fixture.name!r} was made, but is not there as it should be")
    return True


def _is_there(fixture: Fixture, connection: ControlConnection) -> bool:
    return _yes(connection, fixture.probe)


def _yes(connection: ControlConnection, question: str) -> bool:
    (answer,) = connection.one(ControlQuery("the tables of a workload", question, (TRUTH,)))
    return bool(answer)


def _on_standby(fixture: Fixture, route: Route) -> str:
    return (
        f"fixture: {fixture.name!r} cannot be made over {route.name}, because the server is a standby. Make it on the "
        f"primary, by a run there or with this SQL, and wait until it is replicated:\n{statements(fixture.name)}"
    )


def _denied(fixture: Fixture, route: Route, error: ClientFailed) -> str:
    return (
        f"fixture: {fixture.name!r} cannot be made: {printable.one_line(str(error))}. Let the user do it "
        f'(GRANT CREATE ON DATABASE "{route.dbname}" TO "{route.user}";) or run this as an owner and grant '
        f'(GRANT USAGE ON SCHEMA pgperf TO "{route.user}"; GRANT SELECT ON ALL TABLES IN SCHEMA pgperf TO '
        f'"{route.user}";):\n{statements(fixture.name)}'
    )
