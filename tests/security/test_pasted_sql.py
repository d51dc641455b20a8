"""SQL that an administrator pastes into psql: a hostile server, or an impostor, chooses names only.

The statements run in a real psql, as a login that may do nothing.
"""

import io
import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from pgperf.access import fixtures, guardrails, readonly_role
from pgperf.catalog.driver_queries import COPYFROM
from pgperf.core.exceptions import PreflightRefused, UnexpectedAnswer
from pgperf.core.records import Route
from pgperf.models import Database, Target
from pgperf.runner import machine_look
from pgperf.runner.plan import make_plan
from pgperf.runner.processes.backends import hidden_from
from pgperf.runner.server.control_connection import ControlConnection
from tests.clients.hostile_server import Forge, HostileServer, message, one_row, one_wide_row
from tests.kept_connections import kept
from tests.machine_looks import look
from tests.runner.builders import definition
from tests.security.conftest import DATABASE, Harm

PSQL = Path(os.environ["PGPERF_PG_CONFIG"]).with_name("psql")
OWN = "pgperf_reader_shop"


@dataclass(frozen=True)
class Pasted:
    """SQL for people, and a place in it for a name of the server's.

    `mark` is in the query that asks for the name, `answer` makes the row with it.
    """

    mark: str
    answer: Callable[[bytes], Forge]
    sql: Callable[[Route], str]
    besides: Mapping[str, Forge] = field(default_factory=dict)


def lacking(route: Route) -> str:
    """The rights that a bulk insert needs."""
    planned = make_plan(definition(workloads=(COPYFROM,), layers=("psycopg",), routes=("tcp",)))
    with pytest.raises(PreflightRefused) as refusal:
        guardrails.apply(planned, {"tcp": route}, production=False, allow_fixtures=True)
    return str(refusal.value).partition("owner: ")[2]


def refused(route: Route) -> str:
    """Of a pooler that does not keep the settings: the statements of the refusal."""
    with pytest.raises(PreflightRefused) as refusal:
        guardrails.guard(replace(route, pooler="session"), guardrails.Demand.SESSION)
    return str(refusal.value).partition("superuser: ")[2]


def granted(route: Route) -> str:
    """As a run asks for what it lacks."""
    with ControlConnection(route) as asking:
        return "; ".join(f"GRANT {role} TO {login}" for role, login in asking.all(hidden_from("odd")))


#: Every place in which SQL for people has a name of the server's.
PLACES = {
    "the database of the script": Pasted(
        "SELECT current_database(), name, oid",
        lambda name: one_row(name, OWN.encode(), None),
        readonly_role.create_script,
    ),
    "the database of a grant": Pasted(
        "'CONNECT'", lambda name: one_row(name, OWN.encode()), readonly_role.create_script
    ),
    "a schema": Pasted("AND a.privilege_type = 'CREATE'", one_row, readonly_role.create_script),
    "the owner of tables": Pasted(
        "pg_default_acl", lambda name: one_row(name, b"public", OWN.encode()), readonly_role.create_script
    ),
    "the login that becomes a member": Pasted(
        "SELECT name, current_user FROM reader",
        lambda name: one_row(OWN.encode(), name),
        readonly_role.create_script,
    ),
    "a role of the removal": Pasted(
        "pg_shdepend", lambda name: one_row(OWN.encode() + name, None), readonly_role.removal_script
    ),
    "a database of the removal": Pasted(
        "pg_shdepend", lambda name: one_row(OWN.encode(), name), readonly_role.removal_script
    ),
    "the role of sessions behind a pooler": Pasted(
        "ELSE rolname END, current_user FROM pg_roles",
        lambda name: one_row(name, b"shop"),
        lambda route: readonly_role.session_grant(route, route),
    ),
    "the role of hidden sessions": Pasted(
        "backend_start IS NULL", lambda name: one_row(name, b"shop"), granted
    ),
    "a role that keeps no settings": Pasted(
        "pg_is_in_recovery", lambda name: one_row(name, b"f", b"180000", None, None), refused
    ),
    "a role that may not fill a table": Pasted(
        "pg_is_in_recovery",
        lambda name: one_row(name, b"f", b"180000", None, None),
        lacking,
        {"has_table_privilege('": one_row(b"f")},
    ),
}
#: What psql would obey, outside of a quoted name; {file} must not come to exist.
COMMANDS = {
    "a command": r"\! touch {file}",
    "a closed name": r'x"; \! touch {file}',
    "a doubled quote": r'x""; \! touch {file}',
    "backquotes": "`touch {file}`",
    "a variable": ":`touch {file}`",
    "a closed text": r"x'; \! touch {file}",
    "a backslash before a quote": 'x\\" \\! touch {file}',
    "a comment": r"x -- /* \! touch {file}",
    "a dollar quote": r"$$ \! touch {file}",
    "a pipe": r"x \g |touch {file}",
}
#: A line break, a terminal's controls, text that is turned or hidden.
REFUSED = {
    "a new line": "x\n\\! false",
    "a carriage return": "x\r\\! false",
    "an escape sequence": "x\x1b[201~",
    "a control character of 8 bits": "x\x9b2J",
    "a tab": "x\ty",
    "a line separator": "x\u2028y",
    "text from right to left": "x\u202ey",
    "nothing to see": "x\u200by",
}


@pytest.fixture(scope="module")
def tables(routes: dict[str, Route]) -> None:
    """Those that a bulk insert fills."""
    fixtures.ensure("copyfrom", Database(name="tables", allow_fixtures=True), routes["tcp"])


@dataclass(frozen=True)
class Served:
    """A server that has any name in a place."""

    place: Pasted
    route: Route
    forges: dict[str, Forge]

    def sql(self, name: str) -> str:
        """The SQL for people with this name in it."""
        self.forges[self.place.mark] = self.place.answer(name.encode())
        return self.place.sql(self.route)

    def refusal(self, name: str) -> str:
        """The error that this name causes."""
        try:
            return f"accepted: {self.sql(name)}"
        except UnexpectedAnswer as error:
            return str(error)


@pytest.fixture
def served(tables: None, routes: dict[str, Route]) -> Iterator[Callable[[str], Served]]:
    """Starts the server of a place, which is asked over connections that stay open."""
    asking = (guardrails.__name__, readonly_role.__name__, __name__)
    with ExitStack() as servers, kept(*asking):

        def start(place: str) -> Served:
            found = PLACES[place]
            forges: dict[str, Forge] = {found.mark: found.answer(b""), **found.besides}
            server = servers.enter_context(HostileServer(routes["tcp"].port, forges))
            return Served(found, replace(routes["tcp"], port=server.port), forges)

        yield start


def run_in_psql(harm: Harm, script: str) -> str:
    """Its output. Every statement may fail, as harm_bare may do nothing."""
    login = [f"--host={harm.host}", f"--port={harm.port}", "--username=harm_bare", f"--dbname={DATABASE}"]
    done = subprocess.run(
        [str(PSQL), "--no-psqlrc", "--no-password", *login],
        input=script, text=True, capture_output=True,
        env={"PGPASSWORD": harm.password, "PGCONNECT_TIMEOUT": "10", "PATH": os.defpath},
        start_new_session=True,  # without a terminal, on which \password would ask
        check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_psql_obeys_what_no_mend_would_stop(harm: Harm, tmp_path: Path) -> None:
    """The harness: a command outside of quotes is run."""
    run_in_psql(harm, rf"\! touch {tmp_path}/obeyed")
    assert (tmp_path / "obeyed").exists()


@pytest.mark.parametrize("place", PLACES)
def test_no_name_is_a_command(
    place: str, served: Callable[[str], Served], harm: Harm, tmp_path: Path
) -> None:
    server = served(place)
    for command, text in COMMANDS.items():
        file = tmp_path / command.replace(" ", "-")
        script = server.sql(text.format(file=file))
        assert str(file) in script, (command, script)  # the name is there
        said = run_in_psql(harm, script)
        assert not file.exists(), (command, script)
        assert "syntax error" not in said, (command, said)


@pytest.mark.parametrize("place", PLACES)
def test_an_unprintable_name_is_refused_with_route_and_server(
    place: str, served: Callable[[str], Served]
) -> None:
    server = served(place)
    said = {what: server.refusal(name) for what, name in REFUSED.items()}
    wanted = f"over tcp: the answer of 127.0.0.1:{server.route.port} about"
    wrong = {what: text for what, text in said.items() if wanted not in text or not text.isprintable()}
    assert wrong == {}


@pytest.mark.parametrize(
    ("mark", "row", "sql"),
    [
        ("pg_shdepend", (b"postgres", b"shop"), readonly_role.removal_script),
        ("SELECT current_database(), name, oid", (b"shop", b"postgres", None), readonly_role.create_script),
        ("SELECT name, current_user FROM reader", (b"postgres", b"shop"), readonly_role.create_script),
        ("AND a.privilege_type = 'CREATE'", (b"pg_catalog",), readonly_role.create_script),
        ("pg_default_acl", (b"shop", b"information_schema", OWN.encode()), readonly_role.create_script),
        ("pg_db_role_setting", (OWN.encode(), b"log_statement"), readonly_role.create_script),
    ],
)
def test_names_that_are_not_of_doctors_script_are_refused(
    mark: str, row: tuple[bytes | None, ...], sql: Callable[[Route], str], routes: dict[str, Route]
) -> None:
    """Another role's removal or membership, the server's own tables, other settings."""
    with HostileServer(routes["tcp"].port, {mark: one_row(*row)}) as server, pytest.raises(UnexpectedAnswer):
        sql(replace(routes["tcp"], port=server.port))


@pytest.mark.parametrize("name", ["host=127.0.0.1 port={port}", "postgresql://127.0.0.1:{port}/shop"])
def test_the_name_of_a_database_leads_to_no_other_server(
    name: str, served: Callable[[str], Served], harm: Harm
) -> None:
    """psql's \\connect takes connection strings too."""
    server = served("a database of the removal")
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.setblocking(False)
        dbname = name.format(port=elsewhere.getsockname()[1])
        run_in_psql(harm, server.sql(dbname))
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


@pytest.mark.django_db
class TestCommands:
    """What the commands print on a terminal."""

    @pytest.fixture(autouse=True)
    def seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A look at a made-up machine, which takes no time."""
        monkeypatch.setattr(machine_look, "look", look)

    @pytest.fixture
    def target(self, routes: dict[str, Route]) -> Target:
        row = Database.objects.create(
            name="shop", dbname=connection.settings_dict["NAME"], credential="alias:default"
        )
        return Target.objects.create(database=row, route="tcp", host="127.0.0.1", sslmode="disable")

    def said(self, target: Target, server: HostileServer, *words: str) -> str:
        Target.objects.filter(pk=target.pk).update(port=server.port)
        out = io.StringIO()
        try:
            call_command("pgperf", *words, stdout=out)
        except CommandError:
            pass
        text = out.getvalue()
        assert all(line.isprintable() for line in text.splitlines())
        assert not [line for line in text.splitlines() if line.strip().startswith("\\!")]
        return text

    def test_doctor_refuses_a_version_with_control_characters(
        self, target: Target, routes: dict[str, Route]
    ) -> None:
        forged = {"'server_version'": one_row(b"18\x1b[2J\n\\! false", b"shop")}
        with HostileServer(routes["tcp"].port, forged) as server:
            text = self.said(target, server, "doctor")
            assert f"tcp: the answer of 127.0.0.1:{server.port} about its version is unusable" in text

    @pytest.mark.parametrize(
        ("mark", "forge"),
        [
            ("may create roles", one_row(b"owns\n\\! false\x1b[2J")),
            ("pg_is_in_recovery", one_row(b"shop\x1b[2J\n\\! false", b"f", b"180000", None, None)),
            ("pg_shdepend", one_row(b"x\n\\! false", b"y")),
            (
                "SELECT",
                lambda each: (
                    message("E", b"SERROR\0VERROR\0CXX000\0Mno\n\\! false\x1b[2J\0\0")
                    if each.kind == "T"
                    else each.raw
                    if each.kind not in "DC"
                    else b""
                ),
            ),
        ],
        ids=["powers", "role", "names", "an error"],
    )
    def test_no_line_is_the_servers(
        self, target: Target, routes: dict[str, Route], mark: str, forge: Forge
    ) -> None:
        with HostileServer(routes["tcp"].port, {mark: forge}) as server:
            assert "shop · " in self.said(target, server, "doctor")
            self.said(target, server, "uninstall")

    @pytest.mark.parametrize("columns", [0, 1, 3, 1600])
    def test_uninstall_says_whose_logins_it_could_not_read(
        self, target: Target, routes: dict[str, Route], columns: int
    ) -> None:
        with HostileServer(routes["tcp"].port, {"pg_shdepend": one_wide_row(columns)}) as server:
            text = self.said(target, server, "uninstall")
            assert "-- The logins on the server of shop are not known: " in text
            assert f"tcp: the answer of 127.0.0.1:{server.port} about the roles" in text
