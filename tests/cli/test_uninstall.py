"""`pgperf uninstall` in a site of its own: afterwards its databases are as before the installation."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from pgperf.catalog import FIXTURES
from tests.installation.environments import ROOT, bare_environment
from tests.installation.layouts import TUPLE
from tests.installation.prepared import PreparedSite

APPS = 'INSTALLED_APPS = [*INSTALLED_APPS, "import_export", "pgperf"]\n'
ROWS = {
    "auth_permission": "SELECT codename FROM auth_permission ORDER BY 1",
    "django_content_type": "SELECT app_label, model FROM django_content_type ORDER BY 1, 2",
    "django_migrations": "SELECT app, name FROM django_migrations ORDER BY 1, 2",
    "auth_user_user_permissions": "SELECT count(*) FROM auth_user_user_permissions",
    "auth_group_permissions": "SELECT count(*) FROM auth_group_permissions",
    "django_admin_log": "SELECT object_repr FROM django_admin_log ORDER BY 1",
}
#: What a site does with pgperf: rows, permissions, log entries and a run in a given state.
USE = """
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.utils import timezone
from pgperf.models import Benchmark, Run
user = User.objects.get()
ours = Permission.objects.filter(content_type__app_label="pgperf")
user.user_permissions.add(*ours)
Group.objects.get().permissions.add(*ours)
benchmark = Benchmark.objects.first()
LogEntry.objects.create(user=user, content_type=ContentType.objects.get_for_model(benchmark), object_id=benchmark.pk,
                        object_repr="benchmark", action_flag=2)
run = Run.objects.create(benchmark=benchmark, benchmark_name="x", database_name="x", queue="pgperf", definition={},
                         requested_at=timezone.now())
print(run.pk)
"""
BEFORE = """
from django.contrib.auth.models import Group, Permission, User
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
user = User.objects.create_superuser("captain")
LogEntry.objects.create(user=user, content_type=ContentType.objects.get_for_model(user), object_id=user.pk,
                        object_repr="user", action_flag=2)
group = Group.objects.create(name="crew")
group.permissions.add(Permission.objects.get(codename="change_user"))
"""
END = "from pgperf.models import Run; Run.objects.update(status='{status}')"
FIXTURE = """
from pgperf.access import credentials, fixtures
from pgperf.models import Database
database = Database.objects.get()
fixtures.ensure("site", database, credentials.direct_route(database))
"""


@dataclass
class Installed:
    """A site with pgperf, and the state of its database before pgperf."""

    site: PreparedSite
    database: str
    before: list[str]
    settings: str

    def python(self, code: str) -> str:
        return self.site.manage("shell", "--verbosity=0", "-c", code).strip()

    def state(self) -> list[str]:
        return _state(self.site.env, self.database)

    def leave(self) -> None:
        """Take pgperf out of the settings, and migrate as the next deployment does."""
        (self.site.folder / TUPLE.project.settings_file).write_text(self.settings)
        self.site.changed()
        self.site.manage("migrate", "--verbosity=0")


def _state(env: Mapping[str, str], database: str) -> list[str]:
    if env["DB_ENGINE"].endswith("sqlite3"):
        with sqlite3.connect(database) as connection:
            schema = [
                str(row)
                for row in connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2")
            ]
            return schema + [
                str((name, connection.execute(query).fetchall())) for name, query in ROWS.items()
            ]
    dump = subprocess.run(
        [_program("pg_dump"), "--schema-only", f"--dbname={_dsn(env, database)}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    schema = [line for line in dump.splitlines() if not re.match(r"\\(un)?restrict ", line)]
    with psycopg.connect(_dsn(env, database)) as connection:
        roles = connection.execute("SELECT rolname FROM pg_roles ORDER BY 1").fetchall()
        return [*schema, str(roles)] + [
            str((name, connection.execute(q).fetchall())) for name, q in ROWS.items()
        ]


def _program(name: str) -> str:
    return str(Path(os.environ["PGPERF_PG_CONFIG"]).parent / name)


def _dsn(env: Mapping[str, str], database: str) -> str:
    return psycopg.conninfo.make_conninfo(
        host=env["DB_HOST"],
        port=env["DB_PORT"],
        user=env["DB_USER"],
        password=env["DB_PASSWORD"],
        dbname=database,
    )


@pytest.fixture(scope="module", params=["postgresql", "sqlite3"])
def made(
    request: pytest.FixtureRequest, stack: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """The site before pgperf, then with pgperf in use: what each test gets a copy of."""
    folder = tmp_path_factory.mktemp("made")
    on_postgresql = request.param == "postgresql"
    name = "uninstall_made" if on_postgresql else str(folder / "site.sqlite3")
    with _database(stack, name if on_postgresql else ""):
        env = _environment(stack, request.param, name)
        yield _install(PreparedSite(folder / "site", Path(sys.executable), env), name)


@pytest.fixture
def installed(made: Installed, stack: dict[str, str], tmp_path: Path) -> Iterator[Installed]:
    on_postgresql = made.database == "uninstall_made"
    name = "uninstall" if on_postgresql else str(tmp_path / "site.sqlite3")
    shutil.copytree(made.site.folder, tmp_path / "site")
    with _database(stack, name if on_postgresql else "", made.database):
        if not on_postgresql:
            shutil.copy(made.database, name)
        site = PreparedSite(tmp_path / "site", made.site.python, {**made.site.env, "DB_NAME": name})
        try:
            yield replace(made, site=site, database=name)
        finally:
            site.changed()


def _environment(stack: dict[str, str], engine: str, name: str) -> dict[str, str]:
    return bare_environment(
        DB_ENGINE=f"django.db.backends.{engine}",
        DB_NAME=name,
        DB_USER=stack["PGPERF_DB_USER"],
        DB_PASSWORD=stack["PGPERF_DB_PASSWORD"],
        DB_HOST="127.0.0.1",
        DB_PORT=stack["PGPERF_DB_PORT"],
        PGPERF_BROKER_URL=stack["PGPERF_REDIS_URL"],
        PYTHONPATH=str(ROOT),  # an environment of the matrix has the requirements only
    )


@contextmanager
def _database(stack: dict[str, str], name: str, template: str = "template1") -> Iterator[None]:
    """A database of PostgreSQL; "" is none."""
    if not name:
        yield
        return
    with psycopg.connect(stack["PGPERF_DSN_TCP"], autocommit=True) as connection:
        make = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        connection.execute(make.format(sql.Identifier(name), sql.Identifier(template)))
        try:
            yield
        finally:
            # Without FORCE, which may not end an autovacuum worker.
            connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))


def _install(site: PreparedSite, name: str) -> Installed:
    TUPLE.write(site.folder, site.env)
    site.manage("migrate", "--verbosity=0")
    site.manage("shell", "--verbosity=0", "-c", BEFORE)
    settings = site.folder / TUPLE.project.settings_file
    found = Installed(site, name, _state(site.env, name), settings.read_text())
    settings.write_text(found.settings + APPS)
    site.changed()
    site.manage("migrate", "--verbosity=0")
    site.changed()
    return found


def test_the_databases_are_as_before(installed: Installed, superuser_login: dict[str, object]) -> None:
    on_postgresql = installed.database == "uninstall"
    run_id = installed.python(USE)
    with_pgperf = installed.state()

    # Not while a run is active.
    for words in ((), ("--yes",)):
        assert _refusal(installed, *words) == (
            f"CommandError: Nothing was removed. Run {run_id} is queued or running."
            " Cancel it, or wait until it ends."
        )
    installed.python(END.format(status="running"))
    assert "Nothing was removed" in _refusal(installed, "--yes")
    installed.python(END.format(status="cancelled"))

    if on_postgresql:
        installed.site.manage("pgperf", "add", "default", "--allow-fixtures")
        installed.python(FIXTURE)
        _create_reader(installed, superuser_login)

    # Only printed.
    before = installed.state()
    said = installed.site.manage("pgperf", "uninstall")
    assert "pgperf_run\n" in said
    assert "1 entry in the admin's log" in said
    assert "Nothing was removed" in said
    assert installed.state() == before
    assert before != installed.before
    assert with_pgperf != installed.before

    said = installed.site.run("manage.py", "pgperf", "uninstall", "--yes")
    assert "before the next migrate" in said
    if on_postgresql:
        assert "database default: dropped site, schema pgperf" in said
        script = said.partition("-- The logins")[2].partition("\n")[2].partition("\n1. ")[0]
        _psql(installed, superuser_login, script)
    for words in ((), ("--yes",)):  # a second time
        said = installed.site.manage("pgperf", "uninstall", *words)
        assert said.startswith("There is nothing to remove.\n\nThese steps remain for you:")
        assert "Nothing was removed" not in said
    installed.leave()
    assert installed.state() == installed.before


@pytest.mark.parametrize("made", ["postgresql"], indirect=True)
def test_what_the_site_has_built_on_the_tables_stays(installed: Installed) -> None:
    """A view over a table of pgperf: nothing is dropped, neither the view nor a row."""
    with psycopg.connect(_dsn(installed.site.env, installed.database), autocommit=True) as connection:
        connection.execute(
            "CREATE VIEW durations AS SELECT id, finished_at - started_at AS took FROM pgperf_run"
        )
    before = installed.state()
    said = _refusal(installed, "--yes")
    assert said == "CommandError: Not removed: alias default. The reasons are above."
    assert installed.state() == before


@pytest.mark.parametrize("made", ["postgresql"], indirect=True)
def test_the_schema_goes_after_the_tables_in_it(installed: Installed) -> None:
    """As where the role is named pgperf: its `"$user"` puts the tables into the fixtures' schema."""
    with psycopg.connect(_dsn(installed.site.env, installed.database), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA pgperf")
        for (table,) in connection.execute(
            r"SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'pgperf\_%'"
        ).fetchall():
            connection.execute(
                sql.SQL("ALTER TABLE {} SET SCHEMA pgperf").format(sql.Identifier("public", table))
            )
        connection.execute("ALTER DATABASE uninstall SET search_path = pgperf, public")
    installed.site.manage("pgperf", "add", "default", "--allow-fixtures")
    installed.python(FIXTURE)
    said = installed.site.manage("pgperf", "uninstall", "--yes")
    assert "database default: dropped site\n" in said
    assert said.index("alias default: removed") < said.index("database default: dropped schema pgperf")
    installed.leave()
    assert installed.state() == installed.before


@pytest.mark.parametrize("made", ["postgresql"], indirect=True)
def test_an_unreachable_database_is_named_with_the_sql(installed: Installed) -> None:
    installed.site.manage("pgperf", "add", "default", "--allow-fixtures")
    installed.python("from pgperf.models import Target; Target.objects.update(port=1)")
    said = installed.site.manage("pgperf", "uninstall")
    assert "database default: not reachable" in said
    dropped = said[: said.index("DROP SCHEMA IF EXISTS pgperf;")]
    assert all(f"{step};" in dropped for fixture in FIXTURES.values() for step in fixture.drop)
    assert _refusal(installed, "--yes") == (
        "CommandError: Not removed: the fixtures in default. The reasons are above."
    )
    installed.leave()
    assert installed.state() == installed.before


def _refusal(installed: Installed, *words: str) -> str:
    """The last line of stderr."""
    code, out, err = installed.site.outcome("pgperf", "uninstall", *words)
    assert code == 1, out
    return err.splitlines()[-1]


def _create_reader(installed: Installed, login: dict[str, object]) -> None:
    """As doctor's SQL says, which a superuser runs."""
    code = (
        "from pgperf.access import credentials, readonly_role; from pgperf.models import Database;"
        "print(readonly_role.create_script(credentials.direct_route(Database.objects.get())))"
    )
    script = installed.python(code)
    _psql(installed, login, script[: script.index("\\password")])


def _psql(installed: Installed, login: dict[str, object], script: str) -> None:
    psql = shutil.which("psql") or _program("psql")
    address = [
        f"--host={login['host']}",
        f"--port={login['port']}",
        f"--username={login['user']}",
        installed.database,
    ]
    subprocess.run(
        [psql, "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", *address],
        input=script, env={**os.environ, "PGPASSWORD": str(login["password"])}, check=True, text=True,
    )  # fmt: skip
