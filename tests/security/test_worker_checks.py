"""The worker repeats the checks of a request: group, production name and SQL."""

from contextlib import nullcontext
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command

from pgperf.core.exceptions import InvalidDefinition, PgperfError
from pgperf.core.records import Route
from pgperf.models import Benchmark, Database, Run, Target
from pgperf.runs import state
from pgperf.worker import execution
from pgperf.worker.load_preparation import prepared
from tests.factories import make_benchmark, make_database, make_run
from tests.runner.builders import definition

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("one_heartbeat")]
Status = Run.Status


@pytest.fixture
def database() -> Database:
    row = make_database()
    Target.objects.filter(route="tcp").update(route="here")
    return row


@pytest.fixture
def user() -> User:
    user = User.objects.create(username="ops")
    user.user_permissions.add(Permission.objects.get(codename="start_run"))
    return user


def performed(database: Database, **fields: Any) -> Run:
    frozen = definition(blocks=1).to_json()
    run = make_run(Status.QUEUED, database=database, busy_key=None, definition=frozen, **fields)
    return execution.perform(run.pk, "w@h")


@pytest.mark.parametrize("kind", ["database", "benchmark"])
def test_a_user_who_left_the_group_is_refused(kind: str, database: Database, user: User) -> None:
    group = Group.objects.create(name="insiders")
    user.groups.add(group)
    benchmark = make_benchmark()
    form = {"database": database, "benchmark": benchmark}[kind]
    form.groups.add(group)
    assert performed(database, benchmark=benchmark, requested_by=user).status == Status.DONE
    user.groups.clear()
    run = performed(database, benchmark=benchmark, requested_by=user)
    assert run.status == Status.FAILED
    assert run.error == (f"permission: the user who asked for this run may not see {kind} {form} any more")


def test_a_superuser_is_in_every_group(database: Database, user: User) -> None:
    database.groups.add(Group.objects.create(name="insiders"))
    User.objects.update(is_superuser=True)
    assert performed(database, requested_by=user).status == Status.DONE


@pytest.mark.parametrize(("typed", "status"), [("", "failed"), ("other", "failed"), ("demo", "done")])
def test_a_database_that_became_production_requires_its_name(
    database: Database, typed: str, status: str
) -> None:
    Database.objects.update(production=True)
    run = performed(database, confirmed_name=typed)
    assert run.status == status
    assert ("its name was not confirmed" in run.error) == (status == "failed")


@pytest.mark.parametrize(("typed", "refused"), [("", True), ("other", True), ("demo", False)])
def test_a_load_host_asks_for_the_name_itself(database: Database, typed: str, refused: bool) -> None:
    """A forged row must not make load on a production database."""
    Database.objects.update(production=True)
    run = make_run(Status.RUNNING, definition=definition(blocks=1).to_json(), confirmed_name=typed)
    run.database = Database.objects.get()
    route = Route("here", "localhost", 1, "none", "nobody", "")
    expected = pytest.raises(PgperfError, match="its name was not confirmed") if refused else nullcontext()
    with expected, prepared(run, [], {"here": route}) as found:
        assert found.plan.variants


def test_a_production_run_requires_the_name_at_every_entry_point(database: Database) -> None:
    Database.objects.update(production=True)
    database.refresh_from_db()
    Benchmark.objects.update(routes=["here"], layers=["fake"])
    benchmark = make_benchmark(routes=["here"], layers=["fake"])
    for typed in ("", "Demo"):
        with pytest.raises(InvalidDefinition, match="type its name"):
            state.request(benchmark, database, confirmed=typed, foreground=True)
    assert state.request(benchmark, database, confirmed="demo", foreground=True).confirmed_name == "demo"


def test_the_command_line_requires_the_name(database: Database) -> None:
    Database.objects.update(production=True)
    make_benchmark("spin", routes=["here"], layers=["fake"])
    with pytest.raises(CommandError, match="repeat its name with --database-name demo"):
        call_command("pgperf", "run", "spin", "--database", "demo")
    with pytest.raises(CommandError, match="repeat its name"):
        call_command("pgperf", "run", "spin", "--database", "demo", "--database-name", "dem")
    assert not Run.objects.exists()


def test_the_worker_validates_sql_again(database: Database) -> None:
    frozen = definition(layers=("psycopg",)).to_json()
    frozen["workloads"][0]["sql"] = "SELECT 1; COMMIT"
    run = make_run(Status.QUEUED, database=database, busy_key=None, definition=frozen)
    assert execution.perform(run.pk, "w@h").error.startswith("sql: one statement only")
