"""A program in which many threads look for due schedules at once, for tests of a site's own database.

Two arguments as JSON: the `default` of DATABASES, and USE_TZ.
"""

import json
import os
import sys
from datetime import timedelta
from pathlib import Path

import django
from django.conf import settings

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
settings.configure(
    SECRET_KEY="x",
    USE_TZ=json.loads(sys.argv[2]),
    TIME_ZONE="Europe/Berlin",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "import_export", "pgperf"],
    DATABASES={"default": json.loads(sys.argv[1])},
)
os.environ.pop("DJANGO_SETTINGS_MODULE", None)
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.utils import timezone  # noqa: E402

from pgperf import schedules  # noqa: E402
from pgperf.models import Benchmark, Database, Run, Schedule, Target  # noqa: E402
from pgperf.runs import broker  # noqa: E402
from tests.concurrency import at_once  # noqa: E402

THREADS = 12


def main() -> None:
    call_command("migrate", verbosity=0)
    broker.send = lambda run_id, queue: None
    database = Database.objects.create(name="demo", dbname="app", credential="alias:default")
    Target.objects.create(database=database, route="tcp", host="127.0.0.1")
    owner = User.objects.create_superuser("ada")
    benchmark = Benchmark.objects.get(name="orm-overhead")
    due = (timezone.now() - timedelta(minutes=5)).replace(second=0, microsecond=0)
    local = timezone.localtime(due) if settings.USE_TZ else due
    schedule = Schedule.objects.create(
        benchmark=benchmark, database=database, owner=owner, at=local.time(), due_at=due
    )
    started = sum(map(len, at_once(THREADS, schedules.start_due)))
    print(f"{started} of {THREADS} started {Run.objects.count()} run", end="; ")
    print(f"again {len(schedules.start_due())}", end="; ")
    schedule.refresh_from_db()
    assert schedule.due_at
    print("next in future" if schedule.due_at > timezone.now() else f"next {schedule.due_at}")


main()
