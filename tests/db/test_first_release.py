"""Tables from before the first release: recognised, named by a check, and rebuilt by the example
site.
"""

from collections.abc import Iterator

import pytest
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from example.books.management.commands.set_up_site import remove_unreleased_tables
from pgperf import checks
from pgperf.db import first_release
from pgperf.models import Benchmark, Run
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def unreleased() -> Iterator[None]:
    """A database that older migrations made: their names are recorded, and a table lacks columns.

    The new tables belong into `public`: where another test left the schema of the role's name, the
    search path would put them there, and they would go with it.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET search_path TO public")
    recorder = MigrationRecorder(connection)
    recorder.migration_qs.filter(app="pgperf").delete()
    recorder.record_applied("pgperf", "0001_initial")
    recorder.record_applied("pgperf", "0011_longer_routes")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pgperf_run DROP COLUMN intervention")
    yield
    remove_unreleased_tables()
    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        cursor.execute("RESET search_path")


def found() -> list[str | None]:
    return [message.id for message in run_checks(tags=[checks.TAG], databases=["default"])]


def test_a_migrated_database_passes() -> None:
    assert "pgperf.E005" not in found()
    assert not first_release.is_unreleased(connection)


def test_the_check_gives_the_commands(unreleased: None) -> None:
    (message,) = checks.check_tables(databases=["default"])
    assert message.id == "pgperf.E005"
    assert message.hint
    assert "DROP TABLE " in message.hint
    assert "DELETE FROM \"django_migrations\" WHERE app = 'pgperf';" in message.hint
    assert "manage.py migrate --database default" in message.hint


def test_migrate_stops_before_it_changes_anything(unreleased: None) -> None:
    with pytest.raises(CommandError, match="E005"):
        call_command("migrate", skip_checks=False, verbosity=0)


def test_a_check_without_databases_asks_none(unreleased: None) -> None:
    assert checks.check_tables(databases=None) == []


def test_the_example_site_makes_the_tables_anew(unreleased: None) -> None:
    remove_unreleased_tables()
    call_command("migrate", verbosity=0)
    assert Benchmark.objects.filter(name="orm-overhead").exists()
    assert not Run.objects.exists()


def test_the_example_site_leaves_a_released_database_alone() -> None:
    run = factories.make_run()
    remove_unreleased_tables()
    assert Run.objects.get() == run
